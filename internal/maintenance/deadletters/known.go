package deadletters

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// errNothingNew: every event of a letter was erased or is stored.
var errNothingNew = errors.New("nothing of it may be sent again")

// leaveOut takes out of a letter's frames what may not come again: events that an
// erasure means which was entered after the letter's message was accepted, and of
// a frame that was refused because it could not be told whether it had come before,
// the events that are stored. A frame of which nothing is left is nil: the others
// keep their numbers.
func (d *Letters) leaveOut(ctx context.Context, t *schemas.Topic, l *letter, frames []outFrame, erasures ledger.Erasures) ([]*outFrame, error) {
	out := make([]*outFrame, len(frames))
	source := schemas.SourceOf(l.header) // one that nothing tells is covered
	var erased, stored, left int
	for i := range frames {
		f := &frames[i]
		out[i] = f
		cover := erasures.Covering(source, f.MinTs, f.MaxTs)
		stale := l.Reason == schemas.ReasonStaleSeq
		if len(cover) == 0 && !stale {
			left += f.Rows
			continue
		}
		if d.db == nil {
			return nil, errors.New("it takes ClickHouse to tell which of its events were erased or stored before")
		}
		var r frame.Reader
		if err := r.Open(f.payload, t, f.Schema); err != nil {
			return nil, err
		}
		keep, err := d.notErased(ctx, t, f, &r, cover)
		if err != nil {
			return nil, err
		}
		erased += f.Rows - len(keep)
		if stale {
			n := len(keep)
			if keep, err = d.notStored(ctx, t, f, &r, keep); err != nil {
				return nil, err
			}
			stored += n - len(keep)
		}
		left += len(keep)
		out[i] = only(t, f, &r, keep)
	}
	var why []string
	if erased > 0 {
		why = append(why, fmt.Sprintf("%d events were erased", erased))
	}
	if stored > 0 {
		why = append(why, fmt.Sprintf("%d are stored already", stored))
	}
	if left == 0 {
		return nil, fmt.Errorf("%w: %s; `almanac dead drop %s --seq %s --yes` drops it", errNothingNew, strings.Join(why, ", "), t.Name, l.ID)
	}
	if l.left = erased + stored; l.left > 0 {
		l.Why = strings.Join(why, ", ") + ": left out"
	}
	return out, nil
}

// only is the frame with some of its events; itself with all, nil with none.
func only(t *schemas.Topic, f *outFrame, r *frame.Reader, keep []int) *outFrame {
	switch len(keep) {
	case r.Rows():
		return f
	case 0:
		return nil
	}
	b := frame.NewBuilder(t)
	for _, i := range keep {
		e := r.Event(i)
		e.Attrs = slices.DeleteFunc(e.Attrs, func(a schemas.Attr) bool { return a.Key == schemas.AttrInvalidUTF8 })
		b.Append(&e, r.Ts(i), e.ID)
	}
	frame, payload := b.Encode()
	return &outFrame{Frame: frame, month: f.month, lane: f.lane, payload: bytes.Clone(payload)}
}

// notErased are the numbers of the events that no erasure of the cover means.
func (d *Letters) notErased(ctx context.Context, t *schemas.Topic, f *outFrame, r *frame.Reader, cover ledger.Cover) ([]int, error) {
	keep := make([]int, 0, r.Rows())
	if len(cover) == 0 {
		for i := range r.Rows() {
			keep = append(keep, i)
		}
		return keep, nil
	}
	if cover.Schema() > t.Version {
		return nil, fmt.Errorf("topic %q has a newer schema, which an erasure asks for; do it again", t.Name)
	}
	cond, params := cover.Keep()
	body, err := d.db.Select(ctx, &tables.Select{
		SQL:    query.FreshCondition(t, f.Schema, 0, 0, cond),
		Params: params, Fresh: [][]byte{r.Raw()}, FreshStructure: t.FrameStructure(f.Schema),
		Settings: map[string]string{"log_queries": "0", "max_threads": "1"}, // so that rows count in their order
	})
	if err != nil {
		return nil, fmt.Errorf("asking ClickHouse which events were erased: %w", err)
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, 8*schemas.MaxFrameRows+1))
	if err == nil && len(data)%8 != 0 {
		err = errors.New("the answer is cut short")
	}
	if err != nil {
		return nil, fmt.Errorf("asking ClickHouse which events were erased: %w", err)
	}
	for ; len(data) > 0; data = data[8:] {
		keep = append(keep, int(binary.LittleEndian.Uint64(data)))
	}
	return keep, nil
}

// notStored are those of some events that ClickHouse has not: by time and id.
func (d *Letters) notStored(ctx context.Context, t *schemas.Topic, f *outFrame, r *frame.Reader, of []int) ([]int, error) {
	ids := make([]string, len(of))
	for i, n := range of {
		ids[i] = sql.QuoteText(r.ID(n).String())
	}
	body, err := d.db.Select(ctx, &tables.Select{
		SQL: sql.StoredIDs{
			Table: sql.QuotedTable(d.db.Database, t.Name), Month: uint32(f.month), FromNs: f.MinTs, ToNs: f.MaxTs, IDs: strings.Join(ids, ", "),
		}.SQL(),
		Settings: map[string]string{"log_queries": "0"},
	})
	if err != nil {
		return nil, fmt.Errorf("asking ClickHouse which events are stored: %w", err)
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("asking ClickHouse which events are stored: %w", err)
	}
	has := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		has[strings.TrimSpace(line)] = true
	}
	return slices.DeleteFunc(slices.Clone(of), func(n int) bool { return has[fmt.Sprintf("%d %s", r.Ts(n), r.ID(n))] }), nil
}
