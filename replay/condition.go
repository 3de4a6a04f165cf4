package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// frameCondition is what the rows of a frame must meet to be replayed: the job's
// filter, and that no erasure which covers the frame means them. Empty is every
// row; that is most frames, and they need no statement.
func (j *Job) frameCondition(ctx context.Context, f *schemas.Placed) (string, map[string]string, error) {
	l, err := j.ledger(ctx)
	if err != nil {
		return "", nil, err
	}
	cover := l.Covering(f.Source(), f.MinTs, f.MaxTs)
	if len(cover) == 0 {
		return j.filter, j.params, nil
	}
	keep, params := cover.Keep()
	cond, params := j.both(keep, params)
	return cond, params, nil
}

// ledger is the topic's erasures, at most registry.LedgerStaleness old. What was
// taken out of an entry was out of the streams before.
func (j *Job) ledger(ctx context.Context) (ledger.Erasures, error) {
	l, err := j.r.ledger.Of(ctx, j.topic.Name)
	if err != nil {
		return nil, err
	}
	var out ledger.Erasures
	for _, e := range l {
		if e.Redacted {
			continue
		}
		if e.Schema > j.topic.Version {
			return nil, fmt.Errorf("%w: topic %q has a newer schema, which erasure %s asks for; take the job up again", ErrChanged, j.topic.Name, e.ID)
		}
		out = append(out, e)
	}
	return out, nil
}

// storedCondition is what selects a job's rows of a shard in ClickHouse. What an
// erasure has finished with is not there; what it is at is left out already. While
// it is not known yet up to which position it covers a shard, it is taken to cover
// all: the rows read here are old enough to have left SHARDS.
func (j *Job) storedCondition(ctx context.Context, s *shard) (string, map[string]string, error) {
	cond := fmt.Sprintf("month = %d AND shard = %d", uint32(s.Month), uint64(s.ID))
	if j.spec.From > s.MinTs {
		cond += fmt.Sprintf(" AND ts >= fromUnixTimestamp64Nano(%d, 'UTC')", j.spec.From)
	}
	if j.spec.To < s.MaxTs {
		cond += fmt.Sprintf(" AND ts <= fromUnixTimestamp64Nano(%d, 'UTC')", j.spec.To)
	}
	l, err := j.ledger(ctx)
	if err != nil {
		return "", nil, err
	}
	upTo := map[uint64]ledger.Cover{}
	for _, e := range l.Only(ledger.Waiting, ledger.Erasing) {
		if !s.Overlaps(e.From, e.To) {
			continue
		}
		bound, ok := e.Bounds[s.ID]
		if !ok {
			bound = math.MaxUint64
		}
		upTo[bound] = append(upTo[bound], e)
	}
	params := map[string]string{}
	for i, bound := range slices.Sorted(maps.Keys(upTo)) {
		means, more := upTo[bound].Means(fmt.Sprintf("e%d_", i))
		cond += fmt.Sprintf(" AND NOT (pos <= %d AND %s)", bound, means)
		maps.Copy(params, more)
	}
	cond, params = j.both(cond, params)
	return cond, params, nil
}

// both joins a condition with the job's filter, whose parameters have other names.
func (j *Job) both(cond string, params map[string]string) (string, map[string]string) {
	if j.filter == "" {
		return cond, params
	}
	all := maps.Clone(params)
	maps.Copy(all, j.params)
	return cond + " AND (" + j.filter + ")", all
}

// matching asks ClickHouse, which alone judges filters, for the rows of a frame
// that meet a condition.
func (j *Job) matching(ctx context.Context, u *unit, raw []byte, cond string, params map[string]string) ([]uint64, error) {
	settings := maps.Clone(readSettings)
	settings["max_threads"] = "1" // so that rowNumberInAllBlocks counts the frame's own rows
	body, err := j.r.cfg.DB.Select(ctx, &tables.Select{
		SQL:    query.FreshCondition(&j.topic, u.frame.Schema, u.shard.ID, u.frame.Pos, cond),
		Params: params, Settings: settings, Fresh: [][]byte{raw}, FreshStructure: j.topic.FrameStructure(u.frame.Schema),
	})
	if err != nil {
		return nil, fmt.Errorf("replay: filter on position %d of %s: %w", u.frame.Pos, u.shard.Name(), err)
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, 8*schemas.MaxFrameRows+1))
	if err == nil && len(data)%8 != 0 {
		err = errors.New("its answer is cut short")
	}
	if err != nil {
		return nil, fmt.Errorf("replay: filter on position %d of %s: %w", u.frame.Pos, u.shard.Name(), err)
	}
	rows := make([]uint64, len(data)/8)
	for i := range rows {
		rows[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
	return rows, nil
}
