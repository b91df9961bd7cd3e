"""Expected verdict for every pair of `cases`: rows are operations to commit, columns those committed before.

``.`` is compatible, ``d`` is compatible if other rows were deleted meanwhile, ``R`` must be computed again, ``X``
contradicts. The columns are in the order of the rows, roughly grouped by kind of operation.
"""

from __future__ import annotations

__all__ = ["EXPECTED", "STRICTER", "UNSAID", "expected"]

#: Operations that the reference's public API cannot express completely, or cannot commit.
UNSAID = (
    "insert keys",
    "insert bloom",
    "insert other",
    "insert larger",
    "update log",
    "overwrite config",
    "clone",
    "mem_wal",
    "unknown",
)

#: Cases where the reference has another verdict: (ours, theirs) to its verdict.
STRICTER = {
    # It adds an index without coverage information, which points to removed rows.
    ("index a unknown", "rewrite 0"): ".",
    ("index a unknown", "rewrite 1"): ".",
    ("index a unknown", "rewrite 0+2"): ".",
    # Computing a change of a dropped column again does not help.
    ("replace b of 0", "project drop b"): "R",
    # Depends on the rows; none were deleted here.
    ("overlay a of 0", "update rows of 0"): ".",
    ("overlay b of 0", "update rows of 0"): ".",
    ("overlay a of 1", "update rows of 1"): ".",
    # It replaces the schema that has the new metadata, which is lost.
    **{
        (f"project {change}", settings): "."
        for change in ("rename", "rename preserving", "drop b", "drop b preserving")
        for settings in ("schema k=1", "schema l=1", "schema cleared", "field a", "field a other", "field b")
    },
}

EXPECTED = """
append                    .... ................. XX .............. ... R. R.R. X. ................ .... ... XXX ..... .X
delete in 0               .R.R R.RRRR........... XX .............. R.R RR .... X. ................ RR.R ... XXX ..... .X
delete in 1               ..R. .R....R.......... XX .............. .R. RR .... X. ................ ..RR ... XXX ..... .X
delete all of 0           .R.R R.RRRR........... XX .............. R.R RR .... X. ................ RR.R ... XXX ..... .X
update rows of 0          .R.R R.RRRR........... XX .............. R.R RR R.R. X. ................ RR.R RR. ... ..... .X
update rows of 1          ..R. .R....R.......... XX .............. .R. RR R.R. X. ................ ..RR ..R ... ..... .X
update all of 0           .R.R R.RRRR........... XX .............. R.R RR R.R. X. ................ RR.R RR. ... ..... .X
update masks 0            .R.R R.RRRR........... XX .............. R.R RR R.R. X. ................ RR.R ... ... ..... .X
update a of 0             .R.R R.RRRR........... XX .............. R.R RR R.R. X. ................ RR.R R.. ... ..... .X
update b of 0             .R.R R.RRRR........... XX .............. R.R RR R.RR X. ................ RR.R .R. ... ..... .X
update a of 1             ..R. .R....R.......... XX .............. .R. RR R.R. X. ................ ..RR ..R ... ..... .X
insert                    .... ................. XX .............. ... RR R.R. X. ................ .... ... ... ..... .X
insert keys 1 2           R... RRRRRRRRRR.RRRRRR XX .............. ... RR R.R. X. ................ .... ... ... ..... .X
insert keys 2 3           R... RRRRRRRRRRRRRRRRR XX .............. ... RR R.R. X. ................ .... ... ... ..... .X
insert keys 3 4           R... RRRRRRRR.RRRRRRRR XX .............. ... RR R.R. X. ................ .... ... ... ..... .X
insert keys of a          R... RRRRRRRRRRRRRRRRR XX .............. ... RR R.R. X. ................ .... ... ... ..... .X
insert bloom              R... RRRRRRRRRRRRR.RRR XX .............. ... RR R.R. X. ................ .... ... ... ..... .X
insert other bloom        R... RRRRRRRRRRRR.RRRR XX .............. ... RR R.R. X. ................ .... ... ... ..... .X
insert larger bloom       R... RRRRRRRRRRRRRRRRR XX .............. ... RR R.R. X. ................ .... ... ... ..... .X
update log 5              .... ...............XX XX .............. ... RR R.R. X. ................ .... ... XX. ..... .X
update log 6              .... ...............RX XX .............. ... RR R.R. X. ................ .... ... RX. ..... .X
overwrite                 .... ................. RR .............. ... .. .... .. ................ .... ... XXX ..... .X
overwrite config k        .... ................. RX .............. ... .. .... .. XXX............. .... ... XXX ..... .X
index a on all            .... ................. XX RR............ RRR .. .... X. ................ R.RR ... XXX ..... .X
index a on 0              .... ................. XX RR............ R.R .. .... X. ................ R.RR ... XXX ..... .X
index a on 1              .... ................. XX ..R........... .R. .. .... X. ................ R.RR ... XXX ..... .X
index a unknown           .... ................. XX ...R.......... RRR .. .... X. ................ R.RR ... XXX ..... .X
index b ngram             .... ................. XX ....R......... RRR .. .... X. ................ .R.. ... XXX ..... .X
index b replaced          .... ................. XX .....RRR...... RRR .. .... X. ................ .R.. ... XXX ..... .X
index b extended          .... ................. XX .....RRR...... ... .. .... X. ................ .R.. ... XXX ..... .X
index b dropped           .... ................. XX .....RR....... ... .. .... X. ................ .... ... XXX ..... .X
reuse index on 0          .... ................. XX ........RRRR.. R.R .. .... X. ................ .... ... XXX ..... .X
reuse index on 1          .... ................. XX ........RRRR.. .R. .. .... X. ................ .... ... XXX ..... .X
reuse index trimmed       .... ................. XX ........RRRR.. R.R .. .... X. ................ .... ... XXX ..... .X
reuse index dropped       .... ................. XX ........RRR... ... .. .... X. ................ .... ... XXX ..... .X
log index                 .... ................. XX ............RR ... RR .... X. ................ .... ... ... ..... .X
log index 5               .... ................. XX ............RR ... RR .... X. ................ .... ... ... ..... .X
rewrite 0                 .R.R R.RRRR........... XX RR.RRR..XX..RR R.R RR .... X. ................ RR.R RR. ... ..... .X
rewrite 1                 ..R. .R....R.......... XX R.RRRR..XX..RR .R. RR .... X. ................ ..RR ..R ... ..... .X
rewrite 0+2               .R.R R.RRRR........... XX RR.RRR..XX..RR R.R RR .... X. ................ RR.R RR. ... ..... .X
merge                     RRRR RRRRRRRRRRRRRRRRR XX ............RR RRR RR XXXX X. .........RRRRRR. RRRR RRR XXX ..... .X
merge preserving          RRRR RRRRRRRRRRRRRRRRR XX ............RR RRR RR XXXX X. .........RRRRRR. RRRR RRR XXX ..... .X
project rename            R... RRRRRRRRRRRRRRRRR XX .............. ... RR RRRR X. .........RRRRRR. RRRR RRR XXX ..... .X
project rename preserving .... ................. XX .............. ... RR RRRR X. .........RRRRRR. .... ... XXX ..... .X
project drop b            R... RRRRRRRRRRRRRRRRR XX .............. ... RR RRRR X. .........RRRRRR. RRRR RRR XXX ..... .X
project drop b preserving .... ................. XX .............. ... RR RRRR X. .........RRRRRR. .... ... XXX ..... .X
restore                   .... ................. .. .............. ... .. .... .. .........XXXXXX. .... ... XXX ..... .X
reserve                   .... ................. XX .............. ... .. .... X. ................ .... ... ... ..... .X
config k=1                .... ................. .X .............. ... .. .... .. XXX............. .... ... ... ..... .X
config k=2                .... ................. .X .............. ... .. .... .. XXX............. .... ... ... ..... .X
config no k               .... ................. .X .............. ... .. .... .. XX.............. .... ... ... ..... .X
config l=1                .... ................. .. .............. ... .. .... .. ...XX........... .... ... ... ..... .X
config only l             .... ................. .. .............. ... .. .... .. ...XX........... .... ... ... ..... .X
table k=1                 .... ................. .. .............. ... .. .... .. .....XX.X....... .... ... ... ..... .X
table no k                .... ................. .. .............. ... .. .... .. .....XX.X....... .... ... ... ..... .X
table l=1                 .... ................. .. .............. ... .. .... .. .......XX....... .... ... ... ..... .X
table only m              .... ................. .. .............. ... .. .... .. .....XXXX....... .... ... ... ..... .X
schema k=1                .... ................. XX .............. ... RR .... X. .........XXX.... .... ... ... ..... .X
schema l=1                .... ................. XX .............. ... RR .... X. .........XXX.... .... ... ... ..... .X
schema cleared            .... ................. XX .............. ... RR .... X. .........XXX.... .... ... ... ..... .X
field a                   .... ................. XX .............. ... RR .... X. ............XX.. .... ... ... ..... .X
field a other             .... ................. XX .............. ... RR .... X. ............XX.. .... ... ... ..... .X
field b                   .... ................. XX .............. ... RR .... X. ..............X. .... ... ... ..... .X
config nothing            .... ................. .. .............. ... .. .... .. ................ .... ... ... ..... .X
replace a of 0            ...X R.X.R............ XX RRRR.......... R.R RR R.R. X. ................ R..R ... XXX ..... .X
replace b of 0            ...X R.X..R........... XX ....RRR....... R.R RR R.XX X. ................ .R.. ... XXX ..... .X
replace a of 1            .... .R....R.......... XX RRRR.......... .R. RR R.R. X. ................ ..RR ... XXX ..... .X
replace a of 0 1          ...X RRX.R.R.......... XX RRRR.......... RRR RR R.R. X. ................ R.RR ... XXX ..... .X
overlay a of 0            ...R d.R.............. XX .............. R.R RR R.R. X. ................ .... ... XXX ..... .X
overlay b of 0            ...R d.R.............. XX .............. R.R RR R.R. X. ................ .... ... XXX ..... .X
overlay a of 1            .... .d............... XX .............. .R. RR R.R. X. ................ .... ... XXX ..... .X
mem_wal 5                 XXXX ...............XX XX .............X ... XX XXXX X. ................ XXXX XXX XX. ..... XX
mem_wal 6                 XXXX ...............RX XX .............R ... XX XXXX X. ................ XXXX XXX RX. ..... XX
mem_wal other shard       XXXX ................. XX .............. ... XX XXXX X. ................ XXXX XXX ..X ..... XX
bases x                   .... ................. .. .............. ... .. .... .. ................ .... ... ... XXX.. .X
bases x elsewhere         .... ................. .. .............. ... .. .... .. ................ .... ... ... XX... .X
bases y at x              .... ................. .. .............. ... .. .... .. ................ .... ... ... X.X.. .X
bases z                   .... ................. .. .............. ... .. .... .. ................ .... ... ... ...XX .X
bases w id of z           .... ................. .. .............. ... .. .... .. ................ .... ... ... ...XX .X
clone                     .... ................. .. .............. ... .. .... .. ................ .... ... XXX ..... .X
"""


def expected() -> dict[tuple[str, str], str]:
    """Return the verdict by (ours, theirs); only others can commit ``unknown``."""
    rows = [(line[:26].strip(), line[26:].replace(" ", "")) for line in EXPECTED.strip().splitlines()]
    names = [*(name for name, _ in rows), "unknown"]
    return {(ours, theirs): verdict for ours, cells in rows for theirs, verdict in zip(names, cells, strict=True)}
