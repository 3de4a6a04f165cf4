package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// frame gives f the events of one frame that pass the filter, from behind t.at's
// row on.
func (t *tailing) frame(ctx context.Context, msg *streams.Message) error {
	p, err := schemas.ParsePlaced(msg.Header)
	ref, err2 := schemas.ParseShardSubject(msg.Subject)
	if err != nil || err2 != nil || p.Cleared != "" {
		return nil // no frame, so no event; verify names what should be one
	}
	if t.skip != nil && t.skip(p.Source()) {
		return nil
	}
	erasures, err := t.r.ledger.Of(ctx, t.topic.Name)
	if err != nil {
		return passing{err}
	}
	cover := erasures.Covering(p.Source(), p.MinTs, p.MaxTs)
	if max(p.Schema, cover.Schema()) > t.topic.Version { // of fields that are newer than the tail
		topic, err := t.r.topic(ctx, t.topic.Name)
		if err != nil {
			return passing{err}
		}
		t.topic = topic
		if _, t.where, err = filter.ParseWithin(ctx, t.src, &t.topic, t.began); err != nil { // a row limit means the fields of now
			return joinRequest(err)
		}
	}
	var reader frame.Reader
	if err := reader.Open(msg.Data, &t.topic, p.Schema); err != nil {
		t.note(fmt.Sprintf("message %d of %s looks like a frame and is not: %v; it is passed over, `almanac verify %s` says whether events are missing",
			t.at.seq, msg.Subject, err, t.topic.Name))
		return nil
	}
	at := place{ref.ID, p.Pos, p.Schema}
	if len(cover) == 0 && t.fields == nil {
		if sure, err := t.evaluate(&reader, at); sure {
			return err
		}
	}
	return t.ask(ctx, &reader, at, cover)
}

// place is where a frame is, and its schema version.
type place struct {
	shard  schemas.Shard
	pos    uint64
	schema int
}

// evaluate gives f the events of an open frame that match, without ClickHouse, so that a tail goes on while that is away. It
// reports whether it is sure of all of them (filter.Evaluator); else f got none.
func (t *tailing) evaluate(r *frame.Reader, at place) (sure bool, err error) {
	matches := t.where.OnPlaced(r, at.shard, at.pos)
	var found []int
	for i := t.at.row; i < r.Rows(); i++ {
		switch matches.Of(i) {
		case filter.Unsure:
			return false, nil
		case filter.Yes:
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return true, nil
	}
	if t.lines == nil || t.linesOf != t.topic.Version {
		t.lines, t.linesOf = frame.NewLineWriter(&t.topic), t.topic.Version
	}
	t.lines.Open(r, at.schema, schemas.MonthOf(r.Ts(0)), at.shard)
	for _, i := range found {
		line := t.lines.Append(nil, i, at.pos)
		if err := t.f(tailPos{t.at.seq, i + 1, t.at.stored}.String(), json.RawMessage(line[:len(line)-1])); err != nil {
			return true, err
		}
		t.at.row = i + 1
	}
	return true, nil
}

// ask gives f the events of an open frame that ClickHouse says match, and that the ledger does not cover.
func (t *tailing) ask(ctx context.Context, reader *frame.Reader, at place, cover ledger.Cover) error {
	cond, params := t.where.SQL()
	keep, erased := cover.Keep()
	maps.Copy(params, erased)
	selected := columns(&t.topic)
	if t.fields != nil {
		exprs, mask := t.fields.SQL(column)
		maps.Copy(params, mask)
		selected = strings.Join(exprs, ", ")
	}
	settings := maps.Clone(readSettings)
	settings["max_threads"] = "1" // so that rowNumberInAllBlocks counts the frame's own rows
	source := tables.FreshSource(&t.topic, at.schema, at.shard, at.pos, "rowNumberInAllBlocks() + 1 AS _row")
	body, err := t.r.db.Select(ctx, &tables.Select{
		SQL:    fmt.Sprintf("SELECT %s, _row FROM (%s) WHERE _row > %d AND (%s) AND %s ORDER BY _row FORMAT JSONEachRow", selected, source, t.at.row, cond, keep),
		Params: params, Settings: settings, Fresh: [][]byte{reader.Raw()}, FreshStructure: t.topic.FrameStructure(at.schema),
	})
	if refused := (*tables.Error)(nil); errors.As(err, &refused) && refused.Unwrap() == nil {
		return err
	}
	if err != nil {
		return passing{err}
	}
	defer func() { _ = body.Close() }()
	var heard error
	err = scanLines(body, func(line []byte) error {
		var event json.RawMessage
		var row int
		if event, row, heard = cutRow(line); heard == nil {
			heard = t.f(tailPos{t.at.seq, row, t.at.stored}.String(), event)
		}
		if heard == nil {
			t.at.row = row
		}
		return heard
	})
	if err != nil && heard == nil {
		return passing{fmt.Errorf("query: tail of %q: %w", t.topic.Name, err)} // an answer that broke off
	}
	return err
}

// cutRow takes _row, the last column, off an event.
func cutRow(line []byte) (json.RawMessage, int, error) {
	i := strings.LastIndex(string(line), `,"_row":`)
	if i < 0 {
		return nil, 0, fmt.Errorf("query: ClickHouse's answer has no _row: %.200s", line)
	}
	row, err := strconv.Atoi(strings.Trim(string(line[i+len(`,"_row":`):]), `"}`))
	if err != nil {
		return nil, 0, fmt.Errorf("query: ClickHouse's answer has the row %q", line[i:])
	}
	return json.RawMessage(string(line[:i]) + "}"), row, nil
}
