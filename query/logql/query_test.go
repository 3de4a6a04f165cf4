package logql

import (
	"errors"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// What Grafana and people write is read, and what is refused says which word of it is not built, or where it is wrong.
func TestParse(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]error{
		`{}`:              nil,
		`{service="api"}`: nil,
		"{service=`api`, level!=\"x\"} # a comment":                                                      nil,
		`{service=~"a|b", level!~"d.*",} |= "x" != "y" |~ "z+" !~ "w" |= "a" or "b"`:                     nil,
		`{a="b"} | json | logfmt --strict --keep-empty | line_format "{{.x}} {{ToUpper .y}}"`:            nil,
		`{a="b"} | json a="x.y[0]", b="[\"k\"]" | label_format c=a, d="{{.b}}" | drop a, b="x" | keep c`: nil,
		`{a="b"} | status >= 500 and status < 600 or took > 1.5s, size <= 10KiB | (x = "y" or z =~ "w")`: nil,
		`{a="b"} | x == 1e5 | y != -5`:                                                                nil,
		`count_over_time({a="b"}[5m])`:                                                                nil,
		`count_over_time({a="b"}[5m] |= "x")`:                                                         nil,
		`count_over_time({a="b"} |= "x" [1h30m] offset 1h)`:                                           nil,
		`sum by (level) (rate({a="b"} | detected_level != "" [1m])) * 60`:                             nil,
		`sum(count_over_time({a="b"}[1m])) by (service, level)`:                                       nil,
		`topk(5, sum without (level) (bytes_rate({a="b"}[1m]))) > 10`:                                 nil,
		`quantile_over_time(0.99, {a="b"} | json | unwrap duration(took) | __error__="" [5m]) by (x)`: nil,
		`avg_over_time({a="b"} | unwrap took [5m])`:                                                   nil,
		`vector(1)+vector(1)`:                                                                         nil,
		`1 + 2 * 3`:                                                                                   nil,
		`-(sum(rate({a="b"}[1m])) / 100) >= bool 1`:                                                   nil,
		`  `:                           ErrSyntax,
		`{a="b"`:                       ErrSyntax,
		`{a=b}`:                        ErrSyntax,
		`{a=~"("}`:                     ErrSyntax,
		`{a="b"} |= x`:                 ErrSyntax,
		`{a="b"} |~ "("`:               ErrSyntax,
		`{a="b"} | x > "y"`:            ErrSyntax,
		`{a="b"} | line_format "{{.x"`: ErrSyntax,
		`sum({a="b"})`:                 ErrSyntax,
		`count_over_time({a="b"})`:     ErrSyntax,
		`count_over_time({a="b"} | unwrap x [5m])`:                ErrSyntax,
		`sum_over_time({a="b"}[5m])`:                              ErrSyntax,
		`topk(sum(rate({a="b"}[5m])))`:                            ErrSyntax,
		`sum(5, rate({a="b"}[5m]))`:                               ErrSyntax,
		`nonsense({a="b"}[5m])`:                                   ErrSyntax,
		`{a="b"} |> "<_> x"`:                                      ErrUnsupported,
		`{a="b"} |= ip("10.0.0.0/8")`:                             ErrUnsupported,
		`{a="b"} | x = ip("10.0.0.0/8")`:                          ErrUnsupported,
		`{a="b"} | pattern "<x> <_>"`:                             ErrUnsupported,
		`{a="b"} | regexp "(?P<x>.*)"`:                            ErrUnsupported,
		`{a="b"} | unpack`:                                        ErrUnsupported,
		`{a="b"} | decolorize`:                                    ErrUnsupported,
		`{a="b"} | unwrap x`:                                      ErrUnsupported,
		`{a="b"} | line_format "{{range .x}}{{end}}"`:             ErrUnsupported,
		`{a="b"} | line_format "{{define \"x\"}}y{{end}}"`:        ErrUnsupported,
		`sum(rate({a="b"}[5m])) / sum(rate({a="b"}[5m]))`:         ErrUnsupported,
		`rate({a="b"}[5m]) and rate({a="c"}[5m])`:                 ErrUnsupported,
		`rate({a="b"}[5m]) * on (x) 2`:                            ErrSyntax,
		`absent_over_time({a="b"}[5m])`:                           ErrUnsupported,
		`label_replace(rate({a="b"}[5m]), "x", "y", "z", "w")`:    ErrUnsupported,
		`sum(rate({a="b"}[5m]), "x")`:                             ErrSyntax,
		`{a="b"} |= "` + strings.Repeat("x", MaxQueryBytes) + `"`: ErrTooLarge,
		strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100): ErrTooLarge,
		`{} |~ "(?:.?){1000}" or "(?:.?){1001}"`:                  ErrTooLarge,
		`{a=~"(?:ab.?){900}"}`:                                    ErrTooLarge,
		"{} !~ `" + strings.Repeat("(?:.?){900}", 3) + "`":        ErrTooLarge,
		`{} |= "(?:.?){1000}(?:.?){1000}"`:                        nil,
		`{a=~"` + strings.Repeat("some-host.example|", 500) + `x"} |~ "[a-z]{1,63}(\\.[a-z]{1,63}){3}"`: nil,
	} {
		t.Run(src[:min(len(src), 60)], func(t *testing.T) {
			t.Parallel()
			_, err := Parse(src)
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%v, want %v", err, want)
			}
			var at *Error
			if err != nil && (!errors.As(err, &at) || at.Line == 0 || at.Column == 0) {
				t.Errorf("it says no place: %#v", err)
			}
		})
	}
}

var topicApp = schemas.Topic{Name: "app", Kind: kinds.Log, Fields: []schemas.Field{{Name: "status", Type: schemas.TypeInt64}, {Name: "region", Type: schemas.TypeLowCardinality}, {Name: "took", Type: schemas.TypeFloat64}}}

// What a filter can say is handed on as one, and the rest is left for the stages.
func TestSelection(t *testing.T) {
	t.Parallel()
	f := fieldsOf(&topicApp, []string{"actor.login", "x.y", "x_y", "plain"})
	for src, want := range map[string]struct {
		where string
		rest  int
		none  bool
	}{
		`{}`:              {},
		`{topic="app"}`:   {},
		`{topic="other"}`: {none: true},
		`{service_name="api", detected_level=~"warn|error"}`: {where: `service = 'api' AND level matches '^(?s:warn|error)$'`},
		`{service=~".*"} |= "it's"`:                          {where: `message contains 'it\'s'`},
		`{service=""} != "a" or "b"`:                         {where: `service = '' AND NOT ((message contains 'a' OR message contains 'b'))`},
		`{region="eu"} |~ "a.b" |= ""`:                       {where: "`region` = 'eu' AND message matches '(?-s:a.b)'"},
		`{} != ""`:                                           {none: true},
		`{} | status >= 500 | status = "404"`:                {where: "`status` >= 500 AND `status` = 404"},
		`{} | status = "x"`:                                  {none: true},
		`{} | status = 1.5`:                                  {rest: 1},
		`{} | took > 1.5`:                                    {where: "`took` > 1.5"},
		`{} | took > 9007199254740993`:                       {rest: 1},
		`{} | status > 99999999999999999999`:                 {rest: 1},
		`{} | took > 1.5s`:                                   {rest: 1},
		`{} | plain = 5 or actor_login = "bot"`:              {where: `((attributes.plain >= 5 AND attributes.plain <= 5) OR attributes.actor.login = 'bot')`},
		`{} | x_y = "1"`:                                     {rest: 1}, // two attributes may be it
		`{} | unknown != "1"`:                                {where: `attributes.unknown != '1'`},
		`{} | __error__ = ""`:                                {},
		`{} | json | plain = "x" |= "y"`:                     {rest: 3},
		`{} | plain = "x" | json |= "y"`:                     {where: `attributes.plain = 'x'`, rest: 2},
		`{} | took > 1s |= "y"`:                              {where: `message contains 'y'`, rest: 1},
	} {
		t.Run(src, func(t *testing.T) {
			t.Parallel()
			q, err := Parse(src)
			if err != nil {
				t.Fatal(err)
			}
			if got := q.Log.selection(f); got.where != want.where || len(got.rest) != want.rest || got.none != want.none {
				t.Errorf("%q, %d stages, none %v; want %q, %d, %v", got.where, len(got.rest), got.none, want.where, want.rest, want.none)
			}
		})
	}
}
