package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/jsonout"
)

// Formats of -o. Verbs that hand out events (query, tail, sql) print a table on
// a terminal and ndjson into a pipe, where another program reads; reports are
// tables everywhere. -o decides otherwise.
const (
	asTable  = "table"
	asJSON   = "json"
	asNDJSON = "ndjson"
	asRaw    = "raw"
	asCSV    = "csv"

	asParquet = "parquet"
)

// outputFlag adds -o with the formats a verb has.
func outputFlag(cmd *cobra.Command, formats ...string) {
	addFlags(cmd, short(oneOfWords(textFlag("output", "output `FORMAT`: "+strings.Join(formats, ", ")), formats...), "o"))
	_ = cmd.Flags().SetAnnotation("output", outputFormats, formats)
}

// outputFormats is the annotation of -o with the formats it takes.
const outputFormats = "almanac_formats"

// checkFormat refuses a format of -o that the verb does not have, before the verb does anything.
func checkFormat(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("output")
	if f == nil {
		return nil
	}
	o, formats := f.Value.String(), f.Annotations[outputFormats]
	if o == "" || slices.Contains(formats, o) {
		return nil
	}
	return usageError{fmt.Errorf("-o %s: the formats are %s%s", o, strings.Join(formats, ", "), suggestion(o, formats, ""))}
}

// format is what -o says, or fallback. checkFormat saw before that the verb has it.
func format(cmd *cobra.Command, fallback string) string {
	o, _ := cmd.Flags().GetString("output")
	return cmp.Or(o, fallback)
}

// forEvents is the format of verbs that hand out events when -o is silent.
func (a *app) forEvents() string {
	if terminal(a.stdout) {
		return asTable
	}
	return asNDJSON
}

// newTable is a table without lines, so that it reads well and cuts well.
func newTable(columns ...string) table.Writer {
	t := &printableTable{Writer: table.NewWriter()}
	t.SetStyle(table.Style{
		Name:    "almanac",
		Box:     table.BoxStyle{PaddingLeft: "", PaddingRight: "  ", UnfinishedRow: "…"},
		Format:  table.FormatOptions{Header: text.FormatUpper},
		Options: table.OptionsNoBordersAndSeparators,
	})
	row := make(table.Row, len(columns))
	for i, c := range columns {
		row[i] = c
	}
	t.AppendHeader(row)
	t.SuppressTrailingSpaces()
	return t
}

// printableTable is a table whose cells are printable, by whatever program they were written, also in a pipe: a person reads them where they end up.
type printableTable struct{ table.Writer }

// asIs is a cell with colours or lines of our own.
type asIs string

// AppendRow implements table.Writer.
func (t *printableTable) AppendRow(row table.Row, config ...table.RowConfig) {
	for i := range row {
		if s, ok := row[i].(string); ok {
			row[i] = printable(s)
		}
	}
	t.Writer.AppendRow(row, config...)
}

// numbers aligns the named columns to the right.
func numbers(t table.Writer, columns ...string) {
	configs := make([]table.ColumnConfig, len(columns))
	for i, c := range columns {
		configs[i] = table.ColumnConfig{Name: c, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	t.SetColumnConfigs(configs)
}

func (a *app) printTable(t table.Writer) error {
	_, err := fmt.Fprintln(a.stdout, t.Render())
	return err
}

// printJSON prints one indented document.
func (a *app) printJSON(v any) error {
	return jsonout.WriteIndented(a.stdout, v)
}

// printLines prints one compact document a line.
func printLines[T any](a *app, rows []T) error {
	for _, r := range rows {
		if err := jsonout.Write(a.stdout, r); err != nil {
			return err
		}
	}
	return nil
}

// printRows prints rows as -o says; f makes the table.
func printRows[T any](a *app, cmd *cobra.Command, rows []T, f func() table.Writer) error {
	if rows == nil {
		rows = []T{} // [] and not null
	}
	return printPage(a, format(cmd, asTable), rows, rows, f)
}

// printPage prints a page as JSON, or its rows alone: as lines, or as the table that f makes.
func printPage[T any](a *app, o string, page any, rows []T, f func() table.Writer) error {
	switch o {
	case asJSON:
		return a.printJSON(page)
	case asNDJSON:
		return printLines(a, rows)
	}
	return a.printTable(f())
}

// printRecord prints one record where o is a kind of JSON. Else it reports false, and the
// caller prints a table.
func printRecord(a *app, o string, record any) (printed bool, err error) {
	switch o {
	case asJSON:
		return true, a.printJSON(record)
	case asNDJSON:
		return true, printLines(a, []any{record})
	}
	return false, nil
}

// note tells people something beside the data.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintln(a.stderr, singular(fmt.Sprintf(format, args...)))
}

// counted returns a number of things.
func counted[N int | int64 | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// plural is counted with commas between thousands.
func plural[N int | int64 | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return humanCount(uint64(n)) + " " + thing + "s"
}
