package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Size is what a space, a customer, or all that was selected holds at an instant.
type Size struct {
	Meter    string    `json:"meter,omitempty"`
	Provider string    `json:"provider,omitempty"`
	Space    string    `json:"space,omitempty"`
	Customer string    `json:"customer,omitempty"`
	At       time.Time `json:"at"`
	// Size is a whole number of any size.
	Size string `json:"size"`
	// Causes counts the diffs up to At that count, Repeats their copies.
	Causes  uint64 `json:"causes"`
	Repeats uint64 `json:"repeats"`
	// Anomaly: the size is below zero.
	Anomaly bool `json:"anomaly"`
}

// SizeRequest asks what a topic of kind meter holds at an instant.
type SizeRequest struct {
	Topic string
	// Meter, Provider, Space and Customer select, as in Request.
	Meter, Provider, Space, Customer string
	// At is the instant, in whole milliseconds: diffs of its millisecond count.
	At time.Time
	// GroupBy is what there is a size for, not a span of time.
	GroupBy GroupBy
}

// Bills is the request for bills whose sizes at their end are those at the instant. They begin
// with its day, so that they can be told where only days are kept.
func (q *SizeRequest) Bills() (Request, error) {
	switch {
	case q.At.IsZero():
		return Request{}, fmt.Errorf("%w: a size is at an instant: give at", schemas.ErrRequest)
	case q.GroupBy == ByDay || q.GroupBy == ByMonth:
		return Request{}, fmt.Errorf("%w: group-by %s is for a range of time; a size is at one instant", schemas.ErrRequest, q.GroupBy)
	}
	if _, err := schemas.UnixNs(q.At); err != nil {
		return Request{}, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	at := q.At.UTC().Truncate(time.Millisecond)
	return Request{
		Topic: q.Topic, Meter: q.Meter, Provider: q.Provider, Space: q.Space, Customer: q.Customer,
		From: at.Truncate(24 * time.Hour), To: at.Add(time.Millisecond), GroupBy: q.GroupBy, instant: true,
	}, nil
}

// Sizes calls f with each size, in the order of Bills. A request that selects nothing, and is not grouped, has one of zero.
func (r *Reader) Sizes(ctx context.Context, q SizeRequest, f func(Size) error) error {
	req, err := q.Bills()
	if err != nil {
		return err
	}
	return r.Bills(ctx, req, func(b Bill) error { return f(b.size(req.To)) })
}

// size is what a bill whose range ends just behind an instant says of it.
func (b *Bill) size(to time.Time) Size {
	return Size{
		Meter: b.Meter, Provider: b.Provider, Space: b.Space, Customer: b.Customer, At: to.Add(-time.Millisecond),
		Size: b.SizeEnd, Causes: b.Causes, Repeats: b.Repeats, Anomaly: b.SizeEnd[0] == '-',
	}
}
