package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/internal/operations"
)

func TestParams(t *testing.T) {
	t.Parallel()
	op := &operations.Operation{Params: []operations.Param{
		{Name: "from", Kind: operations.Time}, {Name: "to", Kind: operations.End}, {Name: "n", Kind: operations.Number, Least: 1, Most: 10}, {Name: "dry_run", Kind: operations.Switch},
		{Name: "order", Kind: operations.Word, Words: []string{"desc", "asc"}}, {Name: "step", Kind: operations.Span}, {Name: "fields", Kind: operations.Names}, {Name: "other", Kind: operations.Switch},
	}}
	for name, c := range map[string]struct {
		query string
		code  string
	}{
		"none": {"", ""}, "both": {"from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00.5Z", ""}, "back": {"from=-15m", ""}, "days": {"from=-7d", ""}, "a date": {"to=2026-11-20", ""},
		"a word": {"from=yesterday", "bad_parameter"}, "no unit": {"to=-15", "bad_parameter"}, "twice": {"from=now&from=now", "bad_parameter"},
		"not known": {"form=now", "unknown_parameter"}, "a number": {"n=7", ""}, "too much": {"n=11", "bad_parameter"}, "no number": {"n=x", "bad_parameter"},
		"a switch": {"dry_run", ""}, "no switch": {"dry_run=maybe", "bad_parameter"}, "a word of three": {"order=up", "bad_parameter"}, "no step": {"step=0", "bad_parameter"},
	} {
		p := paramsOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+c.query, nil))
		p.op = op
		p.time("from")
		p.until("to")
		p.number("n")
		p.yes("dry_run")
		p.word("order")
		p.span("step")
		err := p.end()
		if (c.code == "") != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := paramsOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?from=-15m&dry_run&fields=a,attributes['x,y'],b", nil))
	p.op = op
	if from := p.time("from"); time.Since(from) < 15*time.Minute || time.Since(from) > time.Hour {
		t.Errorf("-15m is %s", from)
	}
	if !p.yes("dry_run") || p.yes("other") {
		t.Error("the name alone is true")
	}
	if d := cmp.Diff([]string{"a", "attributes['x,y']", "b"}, p.names("fields")); d != "" {
		t.Error(d)
	}
}

func TestBadParameters(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	New(Config{Anyone: true}).Add(mux)
	for _, path := range []string{"events?limit=0", "events?limit=x", "events?order=up", "histogram?step=0", "histogram", "count?from=x", "facets?n=0", "around/x/y", "values?limit=1001"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/topics/app/"+path, nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"code":"bad_parameter"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// Each parameter of a route that needs no topic to be open is read as it is declared: what it cannot be is refused, and so
// is a name that is not declared, with those that are.
func TestParametersAreReadAsDeclared(t *testing.T) {
	t.Parallel()
	mux := everything()
	ask := func(op *operations.Operation, query string) string {
		w := httptest.NewRecorder()
		path := strings.NewReplacer("{ts}", "2026-11-20T00:00:00Z", "{", "", "}", "").Replace(op.Path)
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), op.Method, path+"?"+query, http.NoBody))
		return w.Body.String()
	}
	wrong := map[operations.Kind]string{
		operations.Number: "x", operations.Time: "x", operations.End: "x", operations.Span: "0", operations.Wait: "2h", operations.Switch: "maybe", operations.Word: "x", operations.Token: "0",
	}
	for _, op := range operations.All {
		opens := strings.HasPrefix(op.Path, "/v1/documents") || strings.HasPrefix(op.Path, "/v1/timers") && !strings.HasSuffix(op.Path, "/config")
		if op.Foreign || opens || op == &operations.SendEvents {
			continue
		}
		for _, name := range op.Names() {
			d := op.Param(name)
			value, ok := wrong[d.Kind]
			if !ok {
				continue
			}
			if got := ask(op, name+"="+value); !strings.Contains(got, "parameter "+name+" is ") {
				t.Errorf("%s %s: %s=%s is answered %s", op.Method, op.Path, name, value, got)
			}
			if d.Kind == operations.Number {
				if got, want := ask(op, fmt.Sprintf("%s=%d", name, d.Most+1)), fmt.Sprintf("it must be %d to %d", d.Least, d.Most); !strings.Contains(got, want) {
					t.Errorf("%s %s: above the bound of %s: %s", op.Method, op.Path, name, got)
				}
			}
		}
		want := "this route takes no parameters"
		if names := op.Names(); len(names) > 0 {
			want = "this route takes " + strings.Join(names, ", ")
		}
		query := "nome=1"
		if op == &operations.Histogram {
			query += "&step=1m"
		}
		if letters := op == &operations.RetryLetters || op == &operations.DropLetters; letters {
			query += "&topic=app"
		}
		if got := ask(op, query); !strings.Contains(got, `"code":"unknown_parameter"`) || !strings.Contains(got, want) {
			t.Errorf("%s %s: a name that is not declared: %s, want %s", op.Method, op.Path, got, want)
		}
	}
}
