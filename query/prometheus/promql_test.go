package prometheus

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/almost"

	"github.com/almanac-events/almanac/schemas/sql"
)

// allEnv runs every file, and not a few.
const allEnv = "ALMANAC_PROMQL_ALL"

// few are files that a run has by default: those about what a store must get right.
var few = []string{"staleness", "selectors", "subquery", "range_queries", "collision"}

// passedOver are files that cannot pass, with the reason.
var passedOver = map[string]string{
	"native_histograms": "native histograms are not kept",
	"start_timestamps":  "the engine is not asked to use start timestamps",
	"type_and_unit":     "types and units are not labels",
}

// Prometheus's own test files, as its Go module has them, over a topic.
func TestPromQLFiles(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus").Output()
	if err != nil {
		t.Skipf("the module of Prometheus is not here: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "promql", "promqltest", "testdata", "*.test"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files in %s: %v", dir, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test")
		t.Run(name, func(t *testing.T) {
			if reason := passedOver[name]; reason != "" {
				t.Skip(reason)
			}
			if os.Getenv(allEnv) == "" && !strings.Contains(" "+strings.Join(few, " ")+" ", " "+name+" ") {
				t.Skipf("%s is not set", allEnv)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			newFileRun(t).run(string(text))
		})
	}
}

// fileRun is a test file that runs.
type fileRun struct {
	*rig
	parser parser.Parser
	engine *promql.Engine
	native bool // what was loaded since the last clear has what is not kept
	evals  int
	passed map[string]int // over, by reason
}

func newFileRun(t *testing.T) *fileRun {
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true, EnableUnquotedUTF8Names: true})
	return &fileRun{rig: newRig(t), parser: p, passed: map[string]int{}, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: MaxSamples, Timeout: MaxTime, LookbackDelta: Lookback, EnableAtModifier: true, EnableNegativeOffset: true, EnableDelayedNameRemoval: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() }, Parser: p,
	})}
}

var (
	loadLine    = regexp.MustCompile(`^load(_with_nhcb)?\s+(\S+)`)
	instantLine = regexp.MustCompile(`^eval(?:_(fail|warn|ordered|info))?\s+instant\s+(?:at\s+(\S+?))?\s+(.+)$`)
	rangeLine   = regexp.MustCompile(`^eval(?:_(fail|warn|info))?\s+range\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+?)\s+(.+)$`)
)

// run carries out the blocks of a file.
func (f *fileRun) run(text string) {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if lines[i] = strings.TrimSpace(lines[i]); strings.HasPrefix(lines[i], "#") {
			lines[i] = ""
		}
	}
	for i := 0; i < len(lines); {
		if lines[i] == "" {
			i++
			continue
		}
		end := i + 1
		for end < len(lines) && lines[end] != "" && lines[i] != "clear" {
			end++
		}
		switch block := lines[i:end]; {
		case block[0] == "clear":
			f.Exec("TRUNCATE TABLE " + sql.QuotedTable(f.DB.Database, "metrics"))
			f.native = false
		case strings.HasPrefix(block[0], "load"):
			f.load(block)
		default:
			if err := f.eval(block); err != nil {
				f.T.Errorf("line %d: %s: %v", i+1, block[0], err)
			}
		}
		i = end
	}
	f.T.Logf("%d evaluations, passed over: %v", f.evals, f.passed)
}

func (f *fileRun) load(block []string) {
	f.T.Helper()
	head := loadLine.FindStringSubmatch(block[0])
	step, err := model.ParseDuration(head[2])
	if err != nil {
		f.T.Fatal(err)
	}
	f.native = f.native || head[1] != ""
	var all []sample
	for _, line := range block[1:] {
		if strings.Contains(line, "{{") || strings.Contains(line, "@st") {
			f.native = true
			continue
		}
		l, values, err := f.parser.ParseSeriesDesc(line)
		if err != nil {
			f.T.Fatalf("%s: %v", line, err)
		}
		for i, v := range values {
			if !v.Omitted {
				all = append(all, sample{l, "", int64(i) * time.Duration(step).Milliseconds(), v.Value})
			}
		}
	}
	if len(all) > 0 {
		f.insert(all...)
	}
}

// expected is what a block says of its result.
type expected struct {
	fail, warn, noWarn bool
	number             *float64
	series             map[string][]parser.SequenceValue
}

// eval evaluates a block; what it cannot say is passed over and counted.
func (f *fileRun) eval(block []string) error {
	want := expected{series: map[string][]parser.SequenceValue{}}
	var q promql.Query
	var err error
	var start time.Time
	var step time.Duration
	at := func(text string) time.Time {
		d, e := model.ParseDuration(strings.TrimPrefix(text, "-"))
		err = errors.Join(err, e)
		if strings.HasPrefix(text, "-") {
			d = -d
		}
		return time.Unix(0, 0).Add(time.Duration(d)).UTC()
	}
	var mod string
	if p := instantLine.FindStringSubmatch(block[0]); p != nil {
		mod, start = p[1], at("0s")
		if p[2] != "" {
			start = at(p[2])
		}
		q, err = f.engine.NewInstantQuery(f.T.Context(), f.store.Topic("metrics"), nil, p[3], start)
	} else if p := rangeLine.FindStringSubmatch(block[0]); p != nil {
		mod, start, step = p[1], at(p[2]), at(p[4]).Sub(time.Unix(0, 0))
		q, err = f.engine.NewRangeQuery(f.T.Context(), f.store.Topic("metrics"), nil, p[5], start, at(p[3]), step)
	} else {
		return errors.New("not understood")
	}
	want.fail, want.warn = mod == "fail", mod == "warn"
	for _, line := range block[1:] {
		switch word := strings.Fields(line); {
		case strings.Contains(line, "{{"):
			f.passed["native histograms"]++
			return nil
		case strings.HasPrefix(line, "expect range vector"), strings.HasPrefix(line, "expect string"):
			f.passed["expect "+word[1]]++
			return nil
		case word[0] == "expect":
			want.fail = want.fail || word[1] == "fail"
			want.warn = want.warn || word[1] == "warn"
			want.noWarn = want.noWarn || word[1] == "no_warn"
		case strings.HasPrefix(line, "expected_fail"):
		default:
			if n, e := strconv.ParseFloat(line, 64); e == nil {
				want.number = &n
				continue
			}
			l, values, e := f.parser.ParseSeriesDesc(line)
			if e != nil {
				return fmt.Errorf("%s: %w", line, e)
			}
			want.series[l.String()] = values
		}
	}
	if f.native {
		f.passed["native histograms"]++
		return nil
	}
	f.evals++
	if err != nil {
		if want.fail {
			return nil
		}
		return err
	}
	defer q.Close()
	result := q.Exec(f.T.Context())
	if want.fail != (result.Err != nil) {
		return fmt.Errorf("error is %w, wanted one: %t", result.Err, want.fail)
	}
	if want.fail {
		return nil
	}
	warnings, _ := result.Warnings.AsStrings("", 0, 0)
	if want.warn && len(warnings) == 0 || want.noWarn && len(warnings) > 0 {
		return fmt.Errorf("warnings are %q, wanted some: %t", warnings, want.warn)
	}
	return want.same(result.Value, start, step)
}

// same reports how a result differs from what is expected.
func (want *expected) same(v parser.Value, start time.Time, step time.Duration) error {
	switch v := v.(type) {
	case promql.Scalar:
		if want.number == nil || !equal(v.V, *want.number) {
			return fmt.Errorf("%g, want %v", v.V, want.number)
		}
		return nil
	case promql.Vector:
		if len(v) != len(want.series) {
			return fmt.Errorf("%d series, want %d: %s", len(v), len(want.series), v)
		}
		for i := range v {
			if one := want.series[v[i].Metric.String()]; len(one) != 1 || v[i].H != nil || !equal(v[i].F, one[0].Value) {
				return fmt.Errorf("%s, want %v", v[i], one)
			}
		}
		return nil
	case promql.Matrix:
		return want.matrix(v, start, step)
	}
	return fmt.Errorf("a result of type %s", v.Type())
}

func (want *expected) matrix(all promql.Matrix, start time.Time, step time.Duration) error {
	left := map[string]bool{}
	for name, values := range want.series {
		for _, v := range values {
			if !v.Omitted {
				left[name] = true
			}
		}
	}
	for _, s := range all {
		name := s.Metric.String()
		values := want.series[name]
		delete(left, name)
		got := map[int64]float64{}
		for _, p := range s.Floats {
			got[p.T] = p.F
		}
		for i, v := range values {
			ms := start.Add(time.Duration(i) * step).UnixMilli()
			f, ok := got[ms]
			if ok == v.Omitted || ok && !equal(f, v.Value) {
				return fmt.Errorf("%s at step %d: %g (%t), want %s", name, i, f, ok, v)
			}
			delete(got, ms)
		}
		if len(got) > 0 || len(s.Histograms) > 0 {
			return fmt.Errorf("%s has %d points more", name, len(got))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("missing: %v", left)
	}
	return nil
}

func equal(a, b float64) bool {
	return almost.Equal(a, b, 1e-6) || math.IsNaN(a) && math.IsNaN(b)
}
