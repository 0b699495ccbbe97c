"""Questions to all members: each of three processes asks the others for their names."""

import launch
import priocast


async def member(name: str, network: priocast.JoinParameters) -> None:
    asked = priocast.ReplicatedCounter()
    async with priocast.replicate("ask", asked, member=name, **network):
        asked.replica.questions.answer_with(lambda question: question + f", says {name}".encode())
        await asked.add()  # this member can answer
        await asked.replica.wait_until(lambda: asked.local >= len(launch.NAMES))
        answers = await asked.replica.questions.ask_all(b"here")
        launch.show(f"{name}: {[answers[each] for each in sorted(answers)]}")
        await asked.add()  # this member needs no more answers
        await asked.replica.wait_until(lambda: asked.local == 2 * len(launch.NAMES))


launch.run(member)
