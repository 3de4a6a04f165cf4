package tables

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

func TestWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		params map[string]string
		want   string // empty: refused
	}{
		"text":                     {"{a:String}", map[string]string{"a": "x"}, "'x'"},
		"a quote":                  {"{a:String}", map[string]string{"a": filter.ParamString("') OR 1 --")}, `'\') OR 1 --'`},
		"a backslash and a quote":  {"{a:String}", map[string]string{"a": filter.ParamString(`\'`)}, `'\\\''`},
		"a bare backslash":         {"{a:String}", map[string]string{"a": `x\`}, ""},
		"an unknown escape":        {"{a:String}", map[string]string{"a": `\q`}, ""},
		"a number":                 {"{a:Int64}", map[string]string{"a": "-7"}, "CAST('-7', 'Int64')"},
		"a time":                   {"{a:DateTime64(9, 'UTC')}", map[string]string{"a": "1970-01-01"}, `CAST('1970-01-01', 'DateTime64(9, \'UTC\')')`},
		"texts":                    {"{a:Array(String)}", map[string]string{"a": filter.ParamArray([]string{"x", "it's", `\`, "a,b"}, true)}, `['x','it\'s','\\','a,b']`},
		"numbers":                  {"{a:Array(Float64)}", map[string]string{"a": "[1.5,-2]"}, "CAST(['1.5','-2'], 'Array(Float64)')"},
		"no texts":                 {"{a:Array(String)}", map[string]string{"a": "[]"}, "CAST([], 'Array(String)')"},
		"an array that ends early": {"{a:Array(String)}", map[string]string{"a": "['x', 'y"}, ""},
		"an array that is more":    {"{a:Array(String)}", map[string]string{"a": "['x'] OR ['y']"}, ""},
		"an array without commas":  {"{a:Array(String)}", map[string]string{"a": "['x''y']"}, ""},
		"a bare quote in an array": {"{a:Array(String)}", map[string]string{"a": "[x'y]"}, ""},
		"an open quote":            {"{a:Array(String)}", map[string]string{"a": `['x\']`}, ""},
		"within quotes":            {"'{a:String}' `{a:String}` '\\'{a:String}'", map[string]string{"a": "x"}, "'{a:String}' `{a:String}` '\\'{a:String}'"},
		"a value like a parameter": {"{a:String}{b:String}", map[string]string{"a": "{b:String}", "b": "x"}, "'{b:String}''x'"},
		"one that is not known":    {"{c:String}", map[string]string{"a": "x"}, "{c:String}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := written(c.sql, c.params)
			if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, errEscape) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// A statement with values in its text stays out of the server's query log, whatever its length.
func TestValuesStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	many := func(n int, value string) Condition {
		c := Condition{Params: map[string]string{}}
		for i := range n {
			name := fmt.Sprintf("p%d", i)
			c.SQL, c.Params[name] = c.SQL+"{"+name+":String} ", value
		}
		return c
	}
	for name, c := range map[string]struct {
		statement       Condition
		fields          int
		unlogged, large bool
	}{
		"few parameters":   {many(3, "ann"), 3, false, false},
		"many small ones":  {many(maxParams+1, "ann"), 0, true, false},
		"one that is long": {many(1, strings.Repeat("a", maxParamBytes)), 0, true, true},
		"a long statement": {Condition{SQL: strings.Repeat("1 ", plainBytes)}, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := url.Values{}
			got, err := carried(q, c.statement)
			if err != nil || len(got.Params) != c.fields || (q.Get("log_queries") == "0") != c.unlogged || (q.Get("max_query_size") != "") != c.large {
				t.Errorf("%d fields, %v, %v", len(got.Params), q, err)
			}
		})
	}
}

// What is written into a statement is what ClickHouse reads of a parameter.
func TestWrittenOnServer(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	odd := []string{"", "it's", `back\slash`, "tab\t", "line\n", "\r\b\f\x00", `'); --`, "[1,2]", "{a:String}", "naïve 日本", "\xff\xfe", `\'`, `\\'`}
	params, exprs := map[string]string{}, []string(nil)
	add := func(typ, value string) {
		name := fmt.Sprintf("p%d", len(params))
		params[name] = value
		exprs = append(exprs, "toString({"+name+":"+typ+"})")
	}
	for _, s := range odd {
		add("String", filter.ParamString(s))
	}
	add("Array(String)", filter.ParamArray(odd, true))
	add("Array(String)", "[]")
	add("Array(Int64)", "[-9223372036854775808,9223372036854775807]")
	add("Array(UInt64)", "[18446744073709551615]")
	add("Array(Float64)", "[1.5,-2e+300,0.1]")
	add("Array(Bool)", "[true,false]")
	add("Array(UUID)", filter.ParamArray([]string{"0193a1b2-0000-7000-8000-000000000001"}, true))
	add("Array(DateTime64(9, 'UTC'))", filter.ParamArray([]string{"2026-11-05 10:00:00.000000001"}, true))
	add("DateTime64(9, 'UTC')", "2026-11-05 10:00:00.000000001")
	add("UUID", "0193a1b2-0000-7000-8000-000000000001")
	add("Bool", "true")
	add("Float64", "-2.5e-300")
	add("Int64", "-9223372036854775808")
	add("UInt64", "18446744073709551615")
	add("UInt32", "202611")
	ask := func(more string) string {
		body, err := db.Select(t.Context(), &Select{SQL: "SELECT hex(concat(" + strings.Join(exprs, ", '|', ") + "))" + more + " FORMAT TSV", Params: params})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = body.Close() }()
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	short := ask("")
	params["many"] = filter.ParamArray(slices.Repeat([]string{"x"}, maxParamBytes), true)
	if long := ask(" WHERE 'x' IN {many:Array(String)}"); long != short {
		t.Errorf("%s\nwritten:\n%s", short, long)
	}
}

// longConditions are as many and as long as the erasures of a topic may make them, about.
func longConditions() map[string]Condition {
	users := make([]string, 20_000)
	for i := range users {
		users[i] = fmt.Sprintf("no-user-%08d@example.org", i)
	}
	many := Condition{"1", map[string]string{}}
	for i := range 1500 {
		name := fmt.Sprintf("p%d", i)
		many.SQL += " AND user_id != {" + name + ":String}"
		many.Params[name] = filter.ParamString(fmt.Sprintf("no'body %d", i))
	}
	// As many erasures as a topic may have: lists of a time, of many times, filters, and of a front.
	cover := make(ledger.Cover, ledger.MaxErasures)
	for i := range cover {
		e := &cover[i]
		e.To, e.Cond = math.MaxInt64, ledger.OfUsers("p1", "1")
		e.Params = map[string]string{"p1": filter.ParamArray(users[10*i:10*i+10], true)}
		switch i % 10 {
		case 1:
			e.From = int64(i)
		case 2:
			e.Cond = "`message` = {p1:String} AND match(`level`, {p2:String})"
			e.Params = map[string]string{"p1": fmt.Sprint(i), "p2": "^x"}
		case 3:
			e.Cond = fmt.Sprintf("`type` != 'v%d' AND (%s)", i, e.Cond)
		}
	}
	keep := Condition{}
	keep.SQL, keep.Params = cover.Keep()
	return map[string]Condition{
		"1,000 erasures":     keep,
		"one list of 600 KB": {"user_id NOT IN {p1:Array(String)}", map[string]string{"p1": filter.ParamArray(users, true)}},
		"1,500 parameters":   many,
	}
}

// The probe passes where bounds are ClickHouse's own, and fails where less is taken.
func TestTakesLong(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	if err := db.TakesLong(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := db.http.Transport
	db.http.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.ContentLength > 1<<20 { // as a proxy does
			return &http.Response{StatusCode: http.StatusRequestEntityTooLarge, Body: io.NopCloser(strings.NewReader("too large"))}, nil
		}
		return next.RoundTrip(r)
	})
	if err := db.TakesLong(t.Context()); !errors.As(err, new(*Error)) {
		t.Errorf("a server that takes less: %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A condition with more or larger parameters than ClickHouse takes as fields of a form holds in
// every statement that has one.
func TestLongConditions(t *testing.T) {
	t.Parallel()
	db, _, topic := openWith(t, schemas.NewTopic("app"))
	payload := frameOf(t, &topic, 3)
	var r frame.Reader
	if err := r.Open(payload, &topic, 1); err != nil {
		t.Fatal(err)
	}
	for i, name := range slices.Sorted(maps.Keys(longConditions())) {
		t.Run(name, func(t *testing.T) {
			c := longConditions()[name]
			ref := schemas.ShardRef{Topic: "app", Month: november, ID: schemas.Shard(i + 1)}
			if n, err := db.CountFresh(t.Context(), &topic, 1, [][]byte{r.Raw()}, c); err != nil || n != 3 {
				t.Fatalf("fresh: %d, %v", n, err)
			}
			in := Insert{Topic: &topic, Schema: 1, Month: november, Shard: ref.ID, Frames: framesAt(t, &topic, 1, payload, payload), Keep: c}
			if err := db.Insert(t.Context(), &in); err != nil {
				t.Fatal(err)
			}
			moved := in
			moved.Attempt = 1
			if err := db.Insert(t.Context(), &moved); !errors.Is(err, ErrHeadMoved) {
				t.Errorf("a head that moved: %v", err)
			}
			if pos, rows, err := db.HeadRows(t.Context(), ref); err != nil || pos != 2 || rows != 6 {
				t.Fatalf("stored: position %d, %d rows, %v", pos, rows, err)
			}
			mend := TableRepair{Topic: &topic, Schema: 1, Month: november, Shard: ref.ID, Hi: 2, Keep: c, Frames: in.Frames}
			if err := db.InsertMissing(t.Context(), &mend); err != nil {
				t.Fatal(err)
			}
			if found, err := db.Matching(t.Context(), "app", []schemas.ShardRef{ref}, c, true); err != nil || len(found[ref.ID]) != 2 || found[ref.ID][0].Rows != 3 {
				t.Fatalf("matching: %v, %v", found, err)
			}
			if err := db.Hide(t.Context(), ref, c); err != nil {
				t.Fatal(err)
			}
			if found, err := db.Matching(t.Context(), "app", []schemas.ShardRef{ref}, c, false); err != nil || len(found) != 0 {
				t.Fatalf("after the delete: %v, %v", found, err)
			}
		})
	}
}
