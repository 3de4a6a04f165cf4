package once

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
)

// Rows are read as JSON's decoder reads them, with and without escapes.
func TestSplit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line string
		fast bool
	}{
		"numbers as texts":     {`["12", "-0.5", "nan"]`, true},
		"one":                  {`["a"]`, true},
		"empty ones":           {`["", "", ""]`, true},
		"one empty":            {`[""]`, true},
		"commas and brackets":  {`["a,b", "[]", ", ", "{}"]`, true},
		"other scripts":        {`["größe", "温度"]`, true},
		"quotes":               {`["[\"a\",\"b\"]","1"]`, false},
		"a backslash":          {`["a\\","b"]`, false},
		"a line's end in it":   {`["a\nb"]`, false},
		"an escaped character": {`["\u0001"]`, false},
		"no spaces between":    {`["a","b"]`, false},
		"none":                 {`[]`, false},
		"null":                 {`[null]`, false},
		"null in the middle":   {`["a",null,"b"]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, want []string
			if err := json.Unmarshal([]byte(c.line), &want); err != nil {
				t.Fatal(err)
			}
			if fast := split([]byte(c.line+"\n"), &got); fast != c.fast {
				t.Fatalf("split is %t of %s", fast, c.line)
			} else if fast && !slices.Equal(got, want) {
				t.Errorf("%q, expected %q", got, want)
			}
		})
	}
}

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// Rows that ClickHouse writes are split, and not left to the decoder of JSON.
func TestSplitOfAnAnswer(t *testing.T) {
	t.Parallel()
	db, err := tables.Open(embeddedtest.Start(t, embeddedtest.WithoutNATS()).HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	body, err := db.Select(t.Context(), &tables.Select{SQL: "SELECT '', toString(1.5), 'a,b' FORMAT JSONCompactEachRow", Settings: readSettings})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	line, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	var row []string
	if !split(line, &row) || !slices.Equal(row, []string{"", "1.5", "a,b"}) {
		t.Errorf("%q is %q", line, row)
	}
}

// Whole numbers are numbers, also where the server's profile has them in quotes.
func TestQuotedNumbers(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(embeddedtest.Start(t, embeddedtest.WithoutNATS()).HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	server := &url.URL{Scheme: dsn.Scheme, Host: dsn.Host}
	profile := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(server)
		q := r.Out.URL.Query()
		if quote := "output_format_json_quote_64bit_integers"; !q.Has(quote) { // a statement's settings win
			q.Set(quote, "1")
		}
		r.Out.URL.RawQuery = q.Encode()
	}})
	t.Cleanup(profile.Close)
	dsn.Host = strings.TrimPrefix(profile.URL, "http://")
	db, err := tables.Open(dsn.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const sql = "SELECT toJSONString([toUInt64(7)]), toUInt64(8) FORMAT JSONCompactEachRow"
	for name, c := range map[string]struct {
		ask  func(row func([]json.RawMessage) error) error
		want string
	}{
		"by the profile": {func(row func([]json.RawMessage) error) error {
			body, err := db.Select(t.Context(), &tables.Select{SQL: sql})
			if err != nil {
				return err
			}
			defer func() { _ = body.Close() }()
			var texts []json.RawMessage
			if err := json.NewDecoder(body).Decode(&texts); err != nil {
				return err
			}
			return row(texts)
		}, `"[\"7\"]" "8"`},
		"of Lines": {func(row func([]json.RawMessage) error) error {
			return Lines(t.Context(), db, sql, nil, nil, row)
		}, `"[7]" 8`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := c.ask(func(row []json.RawMessage) error { got = fmt.Sprintf("%s %s", row[0], row[1]); return nil }); err != nil || got != c.want {
				t.Errorf("%s: %s, expected %s, %v", name, got, c.want, err)
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(`["a", "b"]`))
	f.Add([]byte(`["a", ", ", "b"]`))
	f.Add([]byte(`[""", "]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var got, want []string
		if !split(line, &got) || json.Unmarshal(line, &want) != nil {
			return
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, expected %q", line, got, want)
		}
	})
}
