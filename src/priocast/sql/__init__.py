"""A replicated SQL database: transactions in one order at every member, the urgent ones first.

    async with connect("bank", member="a", listen=..., peers=[...], schema=...) as database:
        await database.execute("UPDATE accounts SET balance = balance + 5 WHERE id = 1")

It needs `pip install 'priocast[sql]'`, so `import priocast` does not import it.
"""

from priocast.sql.connecting import connect
from priocast.sql.database import Database
from priocast.sql.database_machine import QueryCursor
from priocast.sql.engine import (
    DatabaseIdentity,
    Engine,
    Parameters,
    SqlValue,
    StatementResult,
    TransactionContext,
)
from priocast.sql.policy import (
    PriorityDecision,
    PriorityPolicy,
    PriorityRule,
    ProcedureRule,
    RaisesFirst,
    SmallestFirst,
    TableRule,
    TransactionFacts,
)
from priocast.sql.procedures import ProcedureCursor
from priocast.sql.result import SqlResult
from priocast.sql.transaction import Transaction

__all__ = [
    "Database",
    "DatabaseIdentity",
    "Engine",
    "Parameters",
    "PriorityDecision",
    "PriorityPolicy",
    "PriorityRule",
    "ProcedureCursor",
    "ProcedureRule",
    "QueryCursor",
    "RaisesFirst",
    "SmallestFirst",
    "SqlResult",
    "SqlValue",
    "StatementResult",
    "TableRule",
    "Transaction",
    "TransactionContext",
    "TransactionFacts",
    "connect",
]
