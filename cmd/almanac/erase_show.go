package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
)

func (a *app) noteStreams(streams []erasure.Holding) {
	for _, h := range streams {
		if h.Messages == 0 {
			continue
		}
		var when []string
		if !h.GoneBy.IsZero() {
			when = append(when, goneBy(h.GoneBy, time.Now()))
		}
		if h.Staying > 0 {
			when = append(when, fmt.Sprintf("%d of them stay until they are purged or superseded", h.Staying))
		}
		a.note("%s: %d messages of its time and from before it; %s", h.Stream, h.Messages, strings.Join(when, "; "))
	}
}

// goneBy says until when something is still there.
func goneBy(by, now time.Time) string {
	if by.After(now) {
		return "gone by " + by.Format(time.RFC3339)
	}
	return "due to go since " + by.Format(time.RFC3339) + ", with the next round of what removes it"
}

func (a *app) printProof(cmd *cobra.Command, p *erasure.Proof) error {
	if printed, err := printRecord(a, format(cmd, asTable), p); printed || err != nil {
		return err
	}
	t := newTable("shard", "before", "erased", "after", "how", "rewritten", "old parts")
	numbers(t, "before", "erased", "after", "old parts")
	for _, s := range p.Shards {
		how := "rewritten"
		if s.Dropped {
			how = "dropped"
		}
		t.AppendRow(table.Row{s.Name, s.Before, s.Rows, s.After, how, s.RewrittenAt.UTC().Format(time.RFC3339), s.OldParts})
	}
	if err := a.printTable(t); err != nil {
		return err
	}
	e := &p.Erasure
	a.note("erasure %s of %s: %s", e.ID, e.Topic, e.State)
	by := ""
	if e.By != "" {
		by = ", by " + printable(e.By)
	}
	a.note("asked   %s%s%s", e.CreatedAt.Format(time.RFC3339), by, quoteReason(e.Reason))
	a.note("what    %s", what(e))
	a.note("fence   events accepted up to message %d", e.Fence)
	a.note("erased  %s in %s; ClickHouse has %s of them now", counted(e.Rows, "event"), counted(e.Shards, "shard"), counted(p.Matching, "row"))
	if e.Diffs > 0 {
		a.note("sums    %s of months whose rows retention had dropped went from their sums", counted(e.Diffs, "diff"))
	}
	if p.OldParts > 0 {
		a.note("on disk %s, unused; ClickHouse removes what is old: %s", counted(p.OldParts, "old part"), goneBy(p.OldPartsGoneBy, time.Now()))
	}
	if u := e.Purged; u != nil {
		a.note("purged  %s, %s of EVENTS, %s, at %s: %s of it, and %d of others, which ClickHouse alone has now",
			counted(u.Frames, "frame"), counted(u.Events, "message"), counted(u.Dead, "dead letter"), u.At.Format(time.RFC3339), counted(u.Erased, "event"), u.Company)
	}
	a.noteStreams(p.Streams)
	if !p.Certified {
		a.note("not certified: %s", p.NotCertified)
		return nil
	}
	a.note("hash    %s", p.Hash)
	return nil
}

func quoteReason(s string) string {
	if s == "" {
		return ""
	}
	return ", " + printable(s)
}

// what an erasure names, for people.
func what(e *ledger.Erasure) string {
	var parts []string
	if len(e.Users) > 0 {
		parts = append(parts, "user "+printable(strings.Join(e.Users, ", ")))
	}
	if e.Where != "" {
		parts = append(parts, "where "+printable(e.Where))
	}
	if e.From > 0 {
		parts = append(parts, "from "+time.Unix(0, e.From).UTC().Format(time.RFC3339Nano))
	}
	if e.To < 1<<63-1 {
		parts = append(parts, "to "+time.Unix(0, e.To+1).UTC().Format(time.RFC3339Nano))
	}
	return strings.Join(parts, ", ")
}

func (a *app) eraseList(ctx context.Context, cmd *cobra.Command, args []string) error {
	return whenServed(ctx, cmd, func(c *session) error {
		all, err := c.reg.Ledgers(ctx)
		if err != nil {
			return err
		}
		redact, _ := cmd.Flags().GetBool("redact")
		list := erasure.List(all, optional(args))
		if len(list) == 0 && len(args) == 1 {
			if _, err := c.reg.Topic(ctx, args[0]); err != nil {
				return err
			}
		}
		for i := range list {
			if redact && !list[i].Redacted {
				list[i] = erasure.Redacted(list[i])
			}
		}
		return printRows(a, cmd, list, func() table.Writer {
			t := newTable("erasure", "topic", "state", "asked", "events", "shards", "what", "reason")
			numbers(t, "events", "shards")
			for i := range list {
				e := &list[i]
				t.AppendRow(table.Row{e.ID, e.Topic, e.State, e.CreatedAt.Format(time.RFC3339), e.Rows, e.Shards, what(e), printable(e.Reason)})
			}
			return t
		})
	})
}

func (a *app) eraseShow(ctx context.Context, cmd *cobra.Command, args []string) error {
	return a.withErasure(ctx, cmd, args[0], false, func(_ *session, x *erasure.Eraser, e ledger.Erasure) error {
		p, err := x.Show(ctx, e.Topic, e.ID)
		if err != nil {
			return err
		}
		if redact, _ := cmd.Flags().GetBool("redact"); redact && !p.Erasure.Redacted {
			p.Erasure = erasure.Redacted(p.Erasure)
		}
		return a.printProof(cmd, p)
	})
}
