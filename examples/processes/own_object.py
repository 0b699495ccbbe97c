"""An account with a copy in each of three processes; deposits are urgent."""

import launch
import priocast


class Account(priocast.ReplicatedObject):
    """A balance that is never negative."""

    def __init__(self) -> None:
        self.balance = 0
        self.withdrawals = 0

    @priocast.replicated(priority=priocast.URGENT)
    def deposit(self, amount: int) -> int:
        """Add an amount; return the balance."""
        self.balance += amount
        return self.balance

    @priocast.replicated
    def withdraw(self, amount: int) -> int:
        """Take an amount away, if there is enough; return the balance."""
        if amount > self.balance:
            raise ValueError(f"only {self.balance} left")
        self.balance -= amount
        self.withdrawals += 1
        return self.balance


async def member(name: str, network: priocast.JoinParameters) -> None:
    account = Account()
    async with priocast.replicate("account", account, member=name, **network):
        await account.deposit(10)
        await account.withdraw(5)
        await account.replica.wait_until(lambda: account.withdrawals == len(launch.NAMES))
        launch.show(f"{name}: {account.balance} left")


launch.run(member)
