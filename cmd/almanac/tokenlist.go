package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
)

// tokenRow is a token as lists show it.
type tokenRow struct {
	Name          string   `json:"name"`
	ID            string   `json:"id,omitempty"`
	Subject       string   `json:"subject,omitempty"`
	Roles         []string `json:"roles"`
	Expires       string   `json:"expires,omitempty"`
	From          []string `json:"from,omitempty"`
	Ended         bool     `json:"ended,omitempty"`
	Where         string   `json:"where,omitempty"`
	EventsASecond float64  `json:"events_per_second,omitempty"`
	BytesASecond  float64  `json:"bytes_per_second,omitempty"`
}

func (a *app) tokenList(_ context.Context, cmd *cobra.Command, _ []string) error {
	path, err := tokensFile(cmd)
	if err != nil {
		return err
	}
	all, err := keep.ReadFile(path)
	if err != nil {
		return err
	}
	rows := make([]tokenRow, len(all))
	for i := range all {
		rows[i] = rowOf(&all[i], time.Now())
	}
	return printRows(a, cmd, rows, func() table.Writer {
		t := newTable("name", "id or subject", "roles", "expires", "from", "rate", "where")
		for _, r := range rows {
			end := r.Expires
			if r.Ended {
				end += " (ended)"
			}
			t.AppendRow(table.Row{r.Name, r.ID + r.Subject, strings.Join(r.Roles, " "), end, strings.Join(r.From, " "), r.rate(), r.Where}) // one has an id or a subject
		}
		return t
	})
}

func rowOf(t *access.Token, now time.Time) tokenRow {
	r := tokenRow{Name: t.Name, ID: t.ID, Subject: t.Subject, Where: t.Where, EventsASecond: t.Rate.Events, BytesASecond: t.Rate.Bytes}
	for _, g := range t.Grants {
		role := string(g.Role)
		if len(g.Topics) > 0 {
			role += ":" + strings.Join(g.Topics, ",")
		}
		r.Roles = append(r.Roles, role)
	}
	if !t.Expires.IsZero() {
		r.Expires, r.Ended = t.Expires.Format(time.RFC3339), !now.Before(t.Expires)
	}
	for _, n := range t.From {
		r.From = append(r.From, n.String())
	}
	return r
}

// rate is what the token may send, in words.
func (r *tokenRow) rate() string {
	var out []string
	for _, bound := range []struct {
		a    float64
		unit string
	}{{r.EventsASecond, "events/s"}, {r.BytesASecond, "bytes/s"}} {
		if bound.a > 0 {
			out = append(out, strconv.FormatFloat(bound.a, 'f', -1, 64)+" "+bound.unit)
		}
	}
	return strings.Join(out, " ")
}
