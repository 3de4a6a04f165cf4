package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/send"
)

// sent prints what came of a send.
func (a *app) sent(sum send.Summary, o string, quiet bool, err error) error {
	switch {
	case o != asTable:
		if o == asJSON {
			err = errors.Join(err, a.printJSON(sum))
		} else {
			err = errors.Join(err, printLines(a, []send.Summary{sum}))
		}
	case !quiet:
		printSummary(a.stderr, sum)
	}
	if err != nil {
		return err
	}
	return sendOutcome(sum)
}

// sendOutcome is the exit code's error.
func sendOutcome(s send.Summary) error {
	switch {
	case s.Accepted == s.Read:
		return nil
	case s.Accepted == 0 && s.Spooled == 0:
		return errSaid
	}
	return errPartial
}

// shownRefusals is how many refusals are printed for people.
const shownRefusals = 10

// printSummary prints for people what came of a send.
func printSummary(w io.Writer, s send.Summary) {
	for _, r := range s.Refusals[:min(len(s.Refusals), shownRefusals)] {
		_, _ = fmt.Fprintf(w, "line %d refused: %s\n", r.Line, r.Error)
	}
	if s.Refused > shownRefusals {
		_, _ = fmt.Fprintf(w, "… and %d more; by reason:", s.Refused-shownRefusals)
		for _, reason := range slices.Sorted(maps.Keys(s.ByReason)) {
			_, _ = fmt.Fprintf(w, " %s %d", reason, s.ByReason[reason])
		}
		_, _ = fmt.Fprintln(w)
	}
	_, _ = fmt.Fprintf(w, "%d read, %d accepted, %d refused", s.Read, s.Accepted, s.Refused)
	if s.Unknown > 0 {
		_, _ = fmt.Fprintf(w, ", %d unknown (sent and not answered: they may be stored)", s.Unknown)
	}
	if s.Spooled > 0 {
		_, _ = fmt.Fprintf(w, ", %d in the spool %s (the next send with --full spool stores them)", s.Spooled, s.SpoolDir)
	}
	if s.Replayed > 0 {
		_, _ = fmt.Fprintf(w, ", %d of earlier sends stored from the spool", s.Replayed)
	}
	if s.NotSent > 0 {
		_, _ = fmt.Fprintf(w, ", %d not sent", s.NotSent)
	}
	if s.NoTime > 0 {
		_, _ = fmt.Fprintf(w, ", %d had no time and got now", s.NoTime)
		if len(s.TimeFields) > 0 {
			_, _ = fmt.Fprintf(w, " (--ts-field %s takes it from there)", strings.Join(s.TimeFields, ","))
		}
	}
	_, _ = fmt.Fprintln(w)
}
