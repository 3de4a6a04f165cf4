package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything answers, and say what to do where it does not",
		Long:  "Check that everything answers, and say what to do where it does not. Exits 1 when a check fails; a warning is no failure.",
		Args:  arguments(0, 0),
		RunE:  a.does(a.doctor),
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

// The outcomes of a check.
const (
	good  = "ok"
	warns = "warn"
	fails = "fail"
)

// finding is the outcome of one check.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Found  string `json:"found"`
	// Do is what to do about it; empty when nothing.
	Do string `json:"do,omitempty"`
}

func (a *app) doctor(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	e := &examination{s: s, rooms: map[string]room{}}
	defer e.close()
	e.all(ctx)
	err = printRows(a, cmd, e.found, func() table.Writer {
		t := newTable("", "check", "found")
		for _, f := range e.found {
			if f.Do != "" {
				f.Found += "\n→ " + f.Do
			}
			t.AppendRow(table.Row{mark(f.Status, colours(a.stdout)), f.Check, f.Found})
		}
		return t
	})
	if err != nil {
		return err
	}
	bad := 0
	for _, f := range e.found {
		if f.Status == fails {
			bad++
		}
	}
	if bad > 0 {
		a.note("%d of %d checks failed", bad, len(e.found))
		return errSaid
	}
	return nil
}

func mark(status string, colour bool) string {
	c := map[string]text.Color{good: text.FgGreen, warns: text.FgYellow, fails: text.FgRed}[status]
	if !colour {
		return status
	}
	return c.Sprint(status)
}

func (e *examination) note(check, status, do, found string, args ...any) {
	e.found = append(e.found, finding{check, status, fmt.Sprintf(found, args...), do})
}

// verdict notes good when err is nil, and otherwise a failure.
func (e *examination) verdict(check string, err error, do, found string, args ...any) bool {
	if err != nil {
		said, next := translated(err)
		e.note(check, fails, cmp.Or(do, next), "%s", said)
		return false
	}
	e.note(check, good, "", found, args...)
	return true
}
