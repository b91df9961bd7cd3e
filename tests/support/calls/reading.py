"""Calls that read the rows of a table."""

from __future__ import annotations

from support.calls.texts import Group, each, expand

COLUMNS = [
    *("None", "[]", "['id']", "['s', 'id']", "['id', 'id']", "!['nope']", "['st']", "['st.x', 'st.deep.z']"),
    *("!'id'", "!('n',)", "![1]", "['_rowid']", "['_rowaddr', 'n']", "['_rowoffset']", "['st.deep', 'st']"),
    *("['With Space']", "{'a': 'n + 1'}", "{'a': 'upper(s)', 'b': 'st.y'}", "!{'a': 'nope'}", "{}"),
    *("{'id': 'f'}", "!{'a': 1}", "!{1: 'n'}", "['vec', 'li']", "['cat', 'void', 'raw']", "['at', 'day']"),
    *("!['']", "!['st.']", "!['.x']", "['ID']", "!{'x': 'x +'}", "!{'x': ''}", "!['id', None]"),
    *("{'a': 'cast(n as string)'}", "{'a': 'li[1]'}", "{'a': 'day'}", "!5", "['big', 'flag']"),
]
FILTERS = [
    *("None", "!''", "'n > 3'", "'n > 3 and s is not null'", "'s = \\'text 1\\''", "!'nope = 1'", "!'n'"),
    *("'flag'", "'not flag'", "'f > 3.5 or n is null'", "'id in (1, 2, 999)'", "'id between 5 and 9'"),
    *("'s like \\'text%\\''", "!'n = \\'a\\''", "pc.field('n') > 3", "!pc.field('nope') > 3"),
    *("pc.field('s').is_null()", "pc.scalar(True)", "!5", "'true'", "'false'", "!'n >'", "!'(n > 1'"),
    *("'st.x > 10'", "!'st.nope > 1'", "'_rowid < 10'", "'day > date \\'2024-01-20\\''", "!'1'", "'null'"),
    *("'n = null'", "'f = 0.0 / 0.0'", "'isnan(f)'", "'raw = x\\'00\\''", "'array_has(li, 1)'"),
    *("'cat = \\'red\\''", "![]", "!b'n'", "!'n > 3; drop'", "'at > timestamp \\'2024-01-02 00:00:00\\''"),
    *("'`With Space` > 3'", "!'id > 9223372036854775808'", "'id = -1'", "'id = 1.5'", "!'n in ()'"),
    *("'n in (null, 1)'", "'void is null'", "'big = \\'ü\\''", "'length(s) > 5'"),
]
LIMITS = [
    *("None", "0", "1", "7", "100", "!-1", "2 ** 31", "!2 ** 63", "!1.5", "!'3'", "!True", "np.int64(4)"),
]
FLAGS = ["None", "True", "False"]
SIZES = [
    *("None", "1", "8", "100000", "!0", "!-1", "!'a'", "!2.5"),
]
ORDERS = [
    *("None", "[]", "['id']", "['n', 'id']", "'id'", "[dataset.ColumnOrdering('n', False), 'id']", "!['nope']"),
    *("![1]", "[dataset.ColumnOrdering('s', nulls_first=True), 'id']", "!['st.x']", "!['vec']", "![None]"),
    *("['f', 'id']",),
]
NUMBERS = [
    *("[]", "[0]", "[3, 1, 2]", "[0, 0]", "[52]", "![53]", "![10 ** 6]", "![-1]", "![2 ** 63]", "range(5)"),
    *("(1, 2)", "pa.array([1, 5])", "pa.array([1, 5], pa.uint64())", "np.array([4, 2])", "![None]", "!['a']"),
    *("![1.0]", "!5", "!None", "!pa.array([1, None])", "!pa.array([1.5])", "!np.array([[1]])"),
    *("pa.array([], pa.int64())", "![True]", "!{1, 2}", "!pa.chunked_array([[1], [2]])"),
    *("np.array([1, 2], np.uint8)", "!iter([1])", "!'12'", "!np.array([1.0, 2.0])"),
]
FRAGMENTS = ["0", "1", "3"]

_TABLE = [
    *each("ds.to_table($x)", COLUMNS),
    *each("ds.to_table(filter=$x)", FILTERS),
    *each("ds.to_table(['id'], limit=$x)", LIMITS),
    *each("ds.to_table(['id'], offset=$x)", LIMITS),
    *each("ds.to_table(['id', 'n', 's'], order_by=$x)", ORDERS),
    *expand("ds.to_table($columns, $filter, limit=$limit)", 80, columns=COLUMNS, filter=FILTERS, limit=LIMITS),
    *expand(
        "ds.to_table($columns, $filter, with_row_id=$a, with_row_address=$b, late_materialization=$c)",
        60,
        columns=COLUMNS,
        filter=FILTERS,
        a=FLAGS,
        b=FLAGS,
        c=FLAGS,
    ),
    *expand(
        "ds.to_table(['id', 'n'], $filter, order_by=$order, limit=$limit, offset=$offset)",
        60,
        filter=FILTERS[:20],
        order=ORDERS,
        limit=LIMITS,
        offset=LIMITS,
    ),
    *expand("ds.to_table(['id'], $filter, use_scalar_index=$flag)", 80, filter=FILTERS, flag=FLAGS[1:]),
    *expand(
        "ds.to_table(['id'], with_row_id=True, include_deleted_rows=$flag, filter=$filter)",
        12,
        flag=FLAGS,
        filter=FILTERS[:6],
    ),
    *each("ds.to_table(['id', 'nope'], **$x)", ["{}", "{'limit': 1}"]),
    *each(
        "ds.to_table(**$x)",
        ["{'nope': 1}", "{'columns': None, 'filter': None}", "{'batch_size': 0}", "{'fragment_readahead': 0}"],
    ),
]
_BATCHES = [
    *each("[b.num_rows for b in ds.to_batches(['id'], batch_size=$x)]", SIZES),
    *expand(
        "pa.Table.from_batches(list(ds.to_batches($columns, $filter, batch_size=$size, batch_readahead=$ahead)))",
        50,
        columns=COLUMNS[:9],
        filter=FILTERS[:14],
        size=SIZES,
        ahead=["None", "1", "4", "0", "-1"],
    ),
    *each("ds.head($x)", LIMITS),
    *expand("ds.head($count, columns=$columns)", 24, count=LIMITS[1:], columns=COLUMNS),
    *each("ds.count_rows($x)", FILTERS),
    *each("ds.scanner(filter=$x).count_rows()", FILTERS[:20]),
    *expand(
        "ds.scanner($columns, filter=$filter).head($count)", 30, columns=COLUMNS, filter=FILTERS[:9], count=LIMITS[1:]
    ),
    *each("ds.scanner($x).projected_schema", COLUMNS),
    *each("ds.scanner(columns=$x).to_reader().read_all()", COLUMNS[:20]),
    *each("[b.num_rows for b in ds.scanner(['id'], batch_size=$x).to_batches()]", SIZES),
    *each("ds.scanner(['id']).take($x)", NUMBERS),
    *each("ds.scanner(scan_in_order=$x).count_rows()", [*FLAGS, "1"]),
    *each("ds.filter($x).to_table(['id'])", FILTERS[10:24]),
    *each("ds.to_pandas($x)", COLUMNS[:22]),
    *each("ds.to_pandas(['id', 'n'], filter=$x)", FILTERS[:16]),
]
_TAKES = [
    *each("ds.take($x, ['id', 's'])", NUMBERS),
    *expand("ds.take($numbers, $columns)", 70, numbers=NUMBERS, columns=COLUMNS),
    *expand(
        "ds._take_rows($numbers, $columns)",
        40,
        numbers=[*NUMBERS[:9], "[2 ** 32, 1]", "[2 ** 40]"],
        columns=COLUMNS[:20],
    ),
    *expand("ds.slice($start, $stop, columns=['id'])", 40, start=LIMITS[1:], stop=LIMITS[1:]),
    *each("ds.sample($x, columns=['id']).num_rows", LIMITS),
    *each("ds.sample(60, $x, randomize_order=False).num_rows", COLUMNS[:20]),
    *expand("sorted(ds.sample(53, ['id'], $order)['id'].to_pylist())", order=["True", "False", "None", "1"]),
]
_FRAGMENTS = [
    *each("ds.get_fragment($x) and ds.get_fragment($x).metadata", ["0", "3", "4", "-1", "2 ** 32", "'a'", "1.5",
        "None", "True"]),
    *expand("ds.get_fragment($i).to_table($columns)", 60, i=FRAGMENTS, columns=COLUMNS),
    *expand("ds.get_fragment($i).to_table(['id'], filter=$filter)", 60, i=FRAGMENTS, filter=FILTERS),
    *expand("ds.get_fragment($i).count_rows($filter)", 50, i=FRAGMENTS, filter=FILTERS),
    *expand("ds.get_fragment($i).take($numbers, $columns)", 70, i=FRAGMENTS, numbers=NUMBERS, columns=COLUMNS),
    *expand("ds.get_fragment($i).head($count)['id']", 24, i=FRAGMENTS, count=LIMITS),
    *expand("ds.get_fragment($i).to_table(['id'], limit=$a, offset=$b)", 40, i=FRAGMENTS, a=LIMITS, b=LIMITS),
    *expand("[b.num_rows for b in ds.get_fragment($i).to_batches(batch_size=$size)]", 16, i=FRAGMENTS, size=SIZES),
    *expand("ds.get_fragment($i).to_pandas(['id', 's'], $filter)", 16, i=FRAGMENTS, filter=FILTERS),
    *expand("ds.get_fragment($i).scanner(columns=$columns, filter=$filter).to_table()", 30, i=FRAGMENTS,
        columns=COLUMNS, filter=FILTERS),
    *expand("ds.get_fragment($i).to_table($columns, with_row_id=$a, with_row_address=$b)", 20, i=FRAGMENTS,
        columns=COLUMNS, a=FLAGS, b=FLAGS),
    *expand("ds.get_fragment($i).open_session($columns).take($numbers)", 30, i=FRAGMENTS, columns=COLUMNS,
        numbers=NUMBERS),
    *expand("ds.get_fragment($i).$name", i=FRAGMENTS, name=["num_deletions", "physical_rows", "schema", "fragment_id",
        "physical_schema"]),
    *each("ds.to_table(['id'], fragments=$x) if False else ds.scanner(['id'], fragments=$x).to_table()",
          ["[ds.get_fragment(1)]", "[]", "[ds.get_fragment(3), ds.get_fragment(0)]", "[1]", "None",
              "ds.get_fragments()"]),
    *each("len(ds.get_fragments($x))", ["", "None", "filter=None"]),
]  # fmt: skip

_ARROW = [
    *each("ds.$x", ["schema", "uri.split('/')[-1]", "version", "latest_version", "has_index", "data_storage_version",
                    "max_field_id", "has_stable_row_ids", "lance_schema", "partition_expression", "tags.list()",
                    "metadata", "config()", "schema_metadata", "branches.list()", "base_paths()", "base_paths()",
                    "get_version()['version']", "get_fragments()[1].fragment_id", "stats.dataset_stats()",
                    "stats.data_stats()", "initial_storage_options()",
                    "latest_storage_options()", "mem_wal_index_details()", "nope", "validate()",
                    "storage_options_accessor"]),
    *each("ds.stats.dataset_stats($x)", ["0", "10", "-1", "'a'", "None"]),
    *each("ds.stats.index_stats($x)['num_indexed_rows']", ["'n_idx'", "'nope'", "None", "1", "''"]),
    *each("ds.index_statistics($x)['index_type']", ["'n_idx'", "'s_idx'", "'nope'", "None"]),
    *each("ds.read_transaction($x)", ["1", "2", "8", "99", "-1", "0", "'a'", "None"]),
    *each("len(ds.get_transactions($x))", ["", "0", "1", "3", "100", "-1", "'a'", "None"]),
    *each("[type(t.operation).__name__ for t in ds.get_transactions($x)]", ["2", "8"]),
    *each("ds.checkout_version($x).version", ["1", "2", "99", "0", "-1", "'nope'", "None", "1.5", "('main', 1)",
        "('main', None)",
                                              "(None, 2)", "('nope', 1)", "()", "(1, 2, 3)", "True", "[1]", "2 ** 64",
                                              "'1'", "''"]),
    *each("L.dataset(path, version=$x).version", ["1", "2", "99", "0", "-1", "'nope'", "None", "1.5", "True", "'1'",
        "2 ** 64"]),
    *each("L.dataset(path, asof=$x).version", ["None", "dt.datetime(1999, 1, 1)", "'1999-01-01'",
        "dt.datetime(2999, 1, 1)", "5", "'nope'"]),
    *each("L.dataset($x)", ["None", "5", "''", "'/nonexistent'", "path + '/data'", "path + '/'", "b'x'", "[path]"]),
    *each("L.dataset(path, **$x).count_rows()", [
        "{'block_size': 4096}", "{'block_size': 0}", "{'block_size': -1}", "{'block_size': 'a'}",
        "{'index_cache_size': 5}",
        "{'metadata_cache_size': 5}", "{'nope': 1}", "{'index_cache_size_bytes': 0}",
        "{'metadata_cache_size_bytes': -1}",
        "{'storage_options': {}}", "{'storage_options': {'timeout': '5s'}}", "{'storage_options': {'timeout': 5}}",
        "{'storage_options': 5}", "{'session': None}", "{'session': 5}", "{'default_scan_options': {'nope': 1}}",
        "{'default_scan_options': {'with_row_id': True}}", "{'read_params': {}}", "{'commit_lock': None}",
        "{'serialized_manifest': b''}",
        "{'version': 1, 'asof': dt.datetime(2999, 1, 1)}", "{'table_id': ['a']}", "{'namespace_client': 5}"]),
    *each("[v['version'] for v in ds.versions()][$x]", ["0", "-1", "99"]),
]  # fmt: skip

GROUPS = [
    Group("scans", "main", tuple(_TABLE)),
    Group("batches", "main", tuple(_BATCHES)),
    Group("takes", "main", tuple(_TAKES)),
    Group("fragments", "main", tuple(_FRAGMENTS)),
    Group("properties", "main", tuple(_ARROW)),
]
