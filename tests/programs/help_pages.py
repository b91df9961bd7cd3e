"""Full-text search over help pages: words, phrases, typing errors, boosts, several columns, filters, new pages."""

import sys

import lance
import pyarrow as pa
from lance.query import BooleanQuery, BoostQuery, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

uri = sys.argv[1] + "/pages.lance"
TITLES = ["Reset your password", "Change the password", "Install the printer", "Printer is offline", "Cancel an order",
          "Order status", "Delete your account", "Password rules"]  # fmt: skip
BODIES = [
    "Open settings and choose reset. A mail with a link is sent to you.",
    "Choose a new password in settings; the old password stops working.",
    "Plug in the printer and wait for the green light.",
    "Restart the printer. If it stays offline, install it again.",
    "An order can be cancelled until it is packed.",
    "The status of an order is shown in your account.",
    "Deleting an account removes every order.",
    "A good password is long. The longer the password the better.",
]
pages = pa.table({"id": range(8), "title": TITLES, "body": BODIES, "views": [i * 10 for i in range(8)]})
dataset = lance.write_dataset(pages, uri)
for column in ("title", "body"):
    dataset.create_scalar_index(column, "INVERTED", with_position=True)


def show(label: str, query: object, **options) -> None:
    table = dataset.to_table(["id", "_score"], full_text_query=query, **options)
    rows = sorted(((round(row["_score"], 4), row["id"]) for row in table.to_pylist()), reverse=True)
    print(label, [(number, score) for score, number in rows])


show("words", MatchQuery("password settings", "body"))
show("dict", {"query": "printer", "columns": ["title"]})
show("every column", "order")
show("phrase", PhraseQuery("the password", "body"))
show("loose phrase", PhraseQuery("printer light", "body", slop=6))
show("typing error", MatchQuery("pasword", "title", fuzziness=1))
show("prefix kept", MatchQuery("qassword", "title", fuzziness=1, prefix_length=1))
show("several columns", MultiMatchQuery("printer order", ["title", "body"], boosts=[2.0, 1.0]))
show("less of", BoostQuery(MatchQuery("password", "body"), MatchQuery("long", "body"), negative_boost=0.2))
both = BooleanQuery([(Occur.MUST, MatchQuery("order", "body")), (Occur.MUST_NOT, MatchQuery("account", "body"))])
show("but not", both)
show("either", MatchQuery("order", "body") | MatchQuery("printer", "body"))
show("filter", MatchQuery("password", "body"), filter="views > 20", prefilter=True)
show("nothing", MatchQuery("zebra", "body"))

more = pa.table({"id": [8], "title": ["Printer paper"], "body": ["Use white paper in the printer."], "views": [5]})
dataset = lance.write_dataset(more, uri, mode="append")
show("new page", MatchQuery("paper", "body"))
dataset.optimize.optimize_indices()
show("indexed", MatchQuery("paper", "body"), fast_search=True)
dataset.delete("id = 3")
show("deleted", MatchQuery("printer", "body"))
print([(each["name"], each["type"]) for each in dataset.list_indices()])
print([token.text for token in lance.tokenize("Deleting Accounts, quickly!", base_tokenizer="simple", stem=True)])
