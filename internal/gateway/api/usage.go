package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

// storedWait is how long a bill waits, without progress, for what was accepted to be stored.
const storedWait = 15 * time.Second

// addUsage adds the bills of topics of kind meter.
func (a *API) addUsage(on routes) {
	if a.cfg.Reader != nil {
		a.bills = usage.New(a.cfg.Reader) // one for all requests: it keeps the ledger for a second
	}
	on.serve(&operations.Usage, a.read(a.usage))
	on.serve(&operations.UsageDiffs, a.read(a.usageDiffs))
}

// usage answers with a report.
func (a *API) usage(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	if p.q.Has("at") {
		return a.usageSizes(p)
	}
	req, wait := usageRequest(p)
	req.GroupBy = usage.GroupBy(p.text("group_by"))
	limit, cursor := p.number("limit"), p.after()
	if err := p.end(); err != nil {
		return nil, err
	}
	if err := a.stored(r, req.Topic, wait); err != nil {
		return nil, err
	}
	rep, err := a.bills.Page(r.Context(), req, limit, cursor)
	if err == nil && unasked(limit, cursor, rep.Cursor) {
		err = tooManyBills("bills")
	}
	if err == nil {
		if cursor == "" && rep.Cursor == "" {
			rep.Contradictions, err = a.bills.Contradict(r.Context(), req, rep.Bills)
		} else { // of the whole request, whatever a page has
			rep.Contradictions, err = a.contradictions(r.Context(), req)
		}
		rep.Cursor = p.next(rep.Cursor)
	}
	if err == nil {
		rep.TooLate, err = a.bills.TooLate(r.Context(), req.Topic, req.To)
	}
	return rep, err
}

func (a *API) contradictions(ctx context.Context, req usage.Request) (uint64, error) {
	found, err := a.bills.Contradictions(ctx, req)
	if err != nil || found == nil {
		return 0, err
	}
	return found.Count, nil
}

// sizes is what is held at an instant.
type sizes struct {
	Topic   string         `json:"topic"`
	At      time.Time      `json:"at"`
	GroupBy usage.GroupBy  `json:"group_by,omitempty"`
	Sizes   []usage.Size   `json:"sizes"`
	Cursor  string         `json:"cursor,omitempty"`
	TooLate *usage.TooLate `json:"too_late,omitempty"`
}

// usageSizes answers with what is held at an instant.
func (a *API) usageSizes(p *params) (any, error) {
	q := usage.SizeRequest{
		Topic: p.r.PathValue("topic"), Meter: p.text("meter"), Provider: p.text("provider"), Space: p.text("space"), Customer: p.text("customer"),
		At: p.time("at"), GroupBy: usage.GroupBy(p.text("group_by")),
	}
	wait, limit, cursor := p.wait(), p.number("limit"), p.after()
	for _, other := range []string{"from", "to", "measure"} {
		if p.one(other) != "" {
			p.bad(other, "left out where at is given")
		}
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if _, err := q.Bills(); err != nil {
		return nil, err
	}
	if err := a.stored(p.r, q.Topic, wait); err != nil {
		return nil, err
	}
	out := sizes{Topic: q.Topic, At: q.At.UTC().Truncate(time.Millisecond), GroupBy: q.GroupBy}
	var err error
	if out.Sizes, out.Cursor, err = a.bills.SizesPage(p.r.Context(), q, limit, cursor); err == nil && unasked(limit, cursor, out.Cursor) {
		err = tooManyBills("sizes")
	}
	if err == nil {
		out.Cursor = p.next(out.Cursor)
		out.TooLate, err = a.bills.TooLate(p.r.Context(), q.Topic, q.At)
	}
	return out, err
}

// unasked reports whether an answer is the first page of several, and pages were not asked for: who does not know of them would sum one
// for all.
func unasked(limit int, cursor, next string) bool { return limit == 0 && cursor == "" && next != "" }

// tooManyBills refuses an answer that is too long.
func tooManyBills(what string) error {
	return request.Refuse(http.StatusBadRequest, "too_many", fmt.Sprintf("there are more than %d %s, or than a page has bytes for", usage.MaxPage, what), fmt.Sprintf("ask for pages with limit=%d and then each cursor, select fewer, or group otherwise; `almanac usage` has any number", usage.MaxPage))
}

// usageDiffs answers with a page of the diffs behind a bill.
func (a *API) usageDiffs(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	req, wait := usageRequest(p)
	limit, cursor := p.number("limit"), p.after()
	if err := p.end(); err != nil {
		return nil, err
	}
	if err := a.stored(r, req.Topic, wait); err != nil {
		return nil, err
	}
	page, err := a.bills.Diffs(r.Context(), req, limit, cursor)
	if err == nil {
		page.Cursor = p.next(page.Cursor)
	}
	return page, err
}

// usageRequest reads what both routes have in common.
func usageRequest(p *params) (req usage.Request, wait time.Duration) {
	req = usage.Request{
		Topic: p.r.PathValue("topic"), Meter: p.text("meter"), Provider: p.text("provider"), Space: p.text("space"), Customer: p.text("customer"),
		From: p.time("from"), To: p.until("to"),
		Measure: usage.Measure(p.word("measure")),
	}
	return req, p.wait()
}

// wait reads how long a read waits until what was accepted is stored.
func (p *params) wait() time.Duration {
	p.declared("wait", operations.Wait)
	text := p.one("wait")
	if text == "" {
		return storedWait
	}
	d, ok := schemas.ParseSpan(text)
	if !ok || d > readWait {
		p.bad("wait", fmt.Sprintf("a length of time such as 5s, at most %s", readWait))
	}
	return d
}

// stored waits until what the topic accepted is stored, and refuses an answer without it.
func (a *API) stored(r *http.Request, topic string, wait time.Duration) error {
	if wait == 0 {
		return nil
	}
	pending, err := a.cfg.Reader.WaitStored(r.Context(), []string{topic}, wait, nil)
	if err != nil || pending == 0 {
		return err
	}
	if filter.LimitOf(r.Context()) != "" {
		return request.Refuse(http.StatusServiceUnavailable, "not_stored", fmt.Sprintf("events of topic %q were accepted and are not stored yet", topic), "send the request again, or with wait=0 for what is stored")
	}
	return request.Refuse(http.StatusServiceUnavailable, "not_stored", fmt.Sprintf("about %d events of topic %q were accepted and are not stored yet, and none was stored for %s", pending, topic, wait), "send the request again, or with wait=0 for what is stored")
}
