package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/series"
)

func (a *app) alignCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "align TOPIC",
		Short: "Align and reduce the points of a metric",
		Long: fmt.Sprintf(`Align the points of a metric to periods, and reduce them over series.

Without --align it gives the points from --from (inclusive) to --to (exclusive). --align
makes one value of the points that a series has in each window (T - period, T]:
  %s
--reduce makes one value of the aligned values of all series, or of each group --by labels:
  %s
The mean of means is --align mean --reduce mean; the mean of all points is --align
summary --reduce mean, and their percentile --align summary --reduce p95. Values of different units stay apart.

Of points of one series and time the last one counts. As "almanac sql" does, it first waits
until what the topic accepted is stored. When nothing is stored for --wait it answers
without the rest, says so, and exits 3. --final leaves out windows that end less than
%s ago, of which points may still come.`, joinWords(series.Aligners), joinWords(series.Reducers), series.Late),
		Annotations: shortAnswer.declared(),
		Example: `  almanac align cpu --metric cpu --from -1h --period 1m --align mean
  almanac align cpu --metric cpu --from -1d --period 1h --align summary --reduce mean --by region
  almanac align cpu --metric requests --from -1h --period 5m --align rate --reduce sum --by host -o csv
  almanac align cpu --metric latency --from -1h --period 5m --align summary --reduce p95
  almanac align cpu --metric load --metric memory --from -1h --period 5m --align mean
  almanac align cpu --metric cpu --from -5m --where "attributes.host = 'a'"`,
		Args: arguments(1, 1),
		RunE: a.does(a.align),
	}
	flagsOf(cmd, &operations.Align, "metric", "from", "to", "period", "align", "reduce", "where", "by", "final", "wait")
	outputFlag(cmd, asTable, asJSON, asNDJSON, asCSV)
	return cmd
}

func joinWords(words []series.Aligner) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return strings.Join(all, ", ")
}

func (a *app) align(ctx context.Context, cmd *cobra.Command, args []string) error {
	o := format(cmd, asTable)
	metrics, _ := cmd.Flags().GetStringArray("metric")
	req, err := alignRequest(cmd, args[0])
	if err != nil {
		return err
	}
	return a.answerOf(ctx, cmd, req.Topic, func(r *query.Reader) error {
		answer, err := series.New(r).AlignEach(ctx, req, metrics)
		if err != nil {
			return err
		}
		if err := a.printAnswer(answer, o); err != nil {
			return err
		}
		if answer.Series == 0 {
			a.note("metric %q has no such series in that range; `almanac series %s` lists them", strings.Join(metrics, ", "), req.Topic)
		}
		return nil
	})
}

func alignRequest(cmd *cobra.Command, topic string) (series.Request, error) {
	f := reading{flags: cmd}
	by, _ := cmd.Flags().GetStringSlice("by")
	final, _ := cmd.Flags().GetBool("final")
	req := series.Request{
		Topic: topic, Where: f.flag("where"), From: f.time("from"), To: f.until("to"), Period: f.span("period"),
		Align: series.Aligner(f.flag("align")), Reduce: series.Aligner(f.flag("reduce")), By: by, Final: final,
	}
	if metrics, _ := cmd.Flags().GetStringArray("metric"); len(metrics) == 0 {
		f.fail("metric", errors.New("it is required"))
	}
	if f.flag("from") == "" {
		f.fail("from", errors.New("it is required"))
	}
	return req, f.err
}

// alignedLine is a point with its group, for ndjson.
type alignedLine struct {
	Metric string            `json:"metric,omitempty"`
	Labels map[string]string `json:"labels"`
	Unit   string            `json:"unit,omitempty"`
	series.Point
}

func (a *app) printAnswer(answer *series.Answer, o string) error {
	switch o {
	case asJSON:
		return a.printJSON(answer)
	case asNDJSON:
		for _, g := range answer.Groups {
			for _, p := range g.Points {
				if err := printLines(a, []alignedLine{{g.Metric, g.Labels, g.Unit, p}}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	sheet := sheetOf(answer)
	if o == asCSV {
		w := csv.NewWriter(a.stdout)
		if err := w.Write(sheet.head()); err != nil {
			return err
		}
		err := sheet.each(func(cells []string, _ float64) error { return w.Write(cells) })
		w.Flush()
		return errors.Join(err, w.Error())
	}
	t := newTable(append(sheet.head(), "")...)
	t.Style().Format.Header = text.FormatDefault
	numbers(t, sheet.values...)
	_ = sheet.each(func(cells []string, value float64) error {
		row := table.Row{}
		for _, c := range cells {
			row = append(row, printable(c))
		}
		t.AppendRow(append(row, sheet.bar(value)))
		return nil
	})
	return a.printTable(t)
}

// sheet is an answer as rows of text.
type sheet struct {
	answer *series.Answer
	labels []string
	named  bool     // each row with its metric
	values []string // names of their columns
	most   float64
	below  bool // some values are below zero: bars would say nothing
}

func sheetOf(answer *series.Answer) *sheet {
	s := &sheet{answer: answer, named: len(answer.Metrics) > 0, values: []string{"value"}}
	names := map[string]bool{}
	for _, g := range answer.Groups {
		for label := range g.Labels {
			names[label] = true
		}
		for _, p := range g.Points {
			if p.Distribution != nil {
				s.values = []string{"count", "mean", "sum", "min", "max", "m2"}
			}
			s.most, s.below = max(s.most, valueOf(&p)), s.below || valueOf(&p) < 0
		}
	}
	s.labels = slices.Sorted(maps.Keys(names))
	return s
}

// valueOf is what a chart shows of a point: of a summary the mean.
func valueOf(p *series.Point) float64 {
	if p.Distribution != nil {
		return float64(p.Distribution.Mean)
	}
	return float64(*p.Value)
}

func (s *sheet) head() []string {
	var metric []string
	if s.named {
		metric = []string{"metric"}
	}
	return slices.Concat(metric, s.labels, []string{"unit", "time"}, s.values)
}

func (s *sheet) each(f func(cells []string, value float64) error) error {
	number := func(n series.Number) string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }
	for _, g := range s.answer.Groups {
		for _, p := range g.Points {
			var cells []string
			if s.named {
				cells = append(cells, g.Metric)
			}
			for _, label := range s.labels {
				cells = append(cells, g.Labels[label])
			}
			cells = append(cells, g.Unit, p.Time.Format(time.RFC3339Nano))
			d := p.Distribution
			switch {
			case len(s.values) == 1:
				cells = append(cells, number(*p.Value))
			case d == nil: // a point among distributions stands for one value
				v := number(*p.Value)
				cells = append(cells, "1", v, v, v, v, "0")
			default:
				cells = append(cells, strconv.FormatUint(d.Count, 10), number(d.Mean), number(d.Sum), number(d.Min), number(d.Max), number(d.M2))
			}
			if err := f(cells, valueOf(&p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// barSteps is how finely a bar tells values apart.
const barSteps = 1_000_000

func (s *sheet) bar(value float64) string {
	if s.below || s.most <= 0 {
		return ""
	}
	return drawn(uint64(value/s.most*barSteps), barSteps)
}
