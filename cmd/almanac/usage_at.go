package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

// sizeRequest reads what --at asks for.
func sizeRequest(cmd *cobra.Command, topic string) (usage.SizeRequest, error) {
	f := reading{flags: cmd}
	q := usage.SizeRequest{
		Topic: topic, Meter: f.flag("meter"), Provider: f.flag("provider"), Space: f.flag("space"), Customer: f.flag("customer"),
		At: f.time("at"), GroupBy: usage.GroupBy(f.flag("group-by")),
	}
	if f.err == nil {
		_, f.err = q.Bills()
	}
	return q, f.err
}

var sizeColumns = []string{"meter", "provider", "space", "customer", "at", "size", "causes", "repeats", "anomaly"}

// usageSizes prints what is held at an instant.
func (a *app) usageSizes(ctx context.Context, u *usage.Reader, q usage.SizeRequest, o string) error {
	sizes := []usage.Size{}
	err := u.Sizes(ctx, q, func(s usage.Size) error {
		if len(sizes) == usage.MaxBills {
			return fmt.Errorf("%w: more than %d sizes; select fewer", schemas.ErrRequest, usage.MaxBills)
		}
		sizes = append(sizes, s)
		return nil
	})
	if err != nil {
		return err
	}
	if o == asJSON && q.GroupBy == usage.Total && len(sizes) == 1 {
		return a.printJSON(sizes[0])
	}
	return printCells(a, o, sizes, sizeColumns, sizeColumns[5:8], func(s *usage.Size) []string {
		anomaly := ""
		if s.Anomaly {
			anomaly = "true"
		}
		return []string{s.Meter, s.Provider, s.Space, s.Customer, s.At.Format(time.RFC3339Nano), s.Size, strconv.FormatUint(s.Causes, 10), strconv.FormatUint(s.Repeats, 10), anomaly}
	})
}

// tellTooLate names diffs that no bill has.
func (a *app) tellTooLate(ctx context.Context, u *usage.Reader, topic string, before time.Time) error {
	late, err := u.TooLate(ctx, topic, before)
	if err == nil && late != nil {
		a.note("%s", late)
	}
	return err
}
