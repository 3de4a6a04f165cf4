package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/schemas"
)

// trails asks for every answer of the acceptance.
func (m *recorded) trails(ctx context.Context, topic string) error {
	r := trail.New(m.read)
	one := func(req trail.Request, want string) error {
		req.Topic, req.Scopes = topic, []string{auditScope}
		page, err := r.Page(ctx, req)
		if err != nil {
			return fmt.Errorf("%+v: %w", req, err)
		}
		var got []string
		for _, e := range page.Entries {
			got = append(got, fmt.Sprintf("%s %s %d/%d %s>%s %d", e.RequestID, e.State, e.Events, len(e.History), e.Before, e.After, e.BeforeBytes+e.AfterBytes))
		}
		if text := strings.Join(got, "; "); text != want {
			return wrongly("%+v: %s, want %s", req, text, want)
		}
		return nil
	}
	const large = `{"omitted_bytes":5242880,"sha256":"7d4609b18354076654caa8e3197d14253df3de4cd708df59518b23599678272f"}`
	leaving := "r-leaving committed 2/0 > 0"
	if m.gone {
		leaving = ""
	}
	err := errors.Join(
		one(trail.Request{RequestID: "r-pair", History: true}, `r-pair rolled_back 2/2 {"name":"old"}>{"name":"new"} 28`),
		one(trail.Request{Resource: "roles/y"}, "r-large committed 2/0 >"+large+" 5242880"),
		one(trail.Request{Open: true}, "r-lost pre_committed 1/0 > 0"),
		one(trail.Request{RequestID: "r-among"}, "r-among  1/0 > 0"),
		one(trail.Request{Actors: []string{"u-9"}}, leaving),
	)
	if err != nil {
		return err
	}
	if err := m.pages(ctx, trail.Request{Topic: topic, Scopes: []string{auditScope}, RequestID: "r-1", Limit: 100}, "[100 100 100 100 100 43]"); err != nil || m.cloud == nil {
		return err
	}
	return m.pages(ctx, trail.Request{Topic: topic, Scopes: []string{cloudScope}, Actors: []string{"bert-jan", "benjamin"}, Limit: 1000}, "[1000 183]")
}

// pages reads all pages of a request: they have as many entries as they must, none twice, the newest first.
func (m *recorded) pages(ctx context.Context, req trail.Request, want string) error {
	var sizes []int
	seen := map[string]bool{}
	last := time.Unix(1<<40, 0)
	for {
		page, err := trail.New(m.read).Page(ctx, req)
		if err != nil {
			return fmt.Errorf("%+v: %w", req, err)
		}
		sizes = append(sizes, len(page.Entries))
		for i := range page.Entries {
			e := &page.Entries[i]
			key := fmt.Sprint(e.RequestID, e.Type, e.Began.UnixNano())
			if seen[key] || e.Began.After(last) {
				return wrongly("%+v: %s comes twice, or after what is older", req, key)
			}
			seen[key], last = true, e.Began
		}
		if req.Cursor = page.Cursor; req.Cursor == "" {
			break
		}
	}
	if got := fmt.Sprint(sizes); got != want {
		return wrongly("%+v: pages of %s, want %s", req, got, want)
	}
	return nil
}

// allCounted checks what verify counts, and how many records SQL has, once all of a topic is derived.
func (m *recorded) allCounted(when, topic string) {
	m.t.Helper()
	rows, count := m.rows, m.count
	if m.gone {
		rows, count = rows-2*meterTimes, count-2
	}
	m.verified(when, topic, uint64(rows-count))
	n, err := m.SQL.Number(m.ctx, "SELECT count() FROM %s WHERE scope != '%s'", m.table(topic+schemas.ViewOnce, ""), awayScope)
	if err != nil || n != uint64(count) {
		m.t.Errorf("%s, topic %s: %d records count, %v, want %d", when, topic, n, err, count)
	}
	n, err = m.SQL.Number(m.ctx, "SELECT uniqExact(request_id) FROM %s WHERE scope = '%s'", m.table(topic+schemas.ViewOnce, ""), cloudScope)
	if err != nil || n != uint64(len(m.cloud)) {
		m.t.Errorf("%s, topic %s: %d records of CloudTrail, %v, want %d", when, topic, n, err, len(m.cloud))
	}
}
