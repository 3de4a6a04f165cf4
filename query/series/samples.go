package series

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Key tells the series of a topic apart.
type Key [16]byte

// Keyed is a series with its key.
type Keyed struct {
	Series
	Key Key
}

// All reads every series of a request, without an order. More than MaxSeries are ErrTooMuch. They are of the list that
// is kept, where that has the series of all rows. What is in them is not to be changed.
func (r *Reader) All(ctx context.Context, q ListRequest) (list []Keyed, err error) {
	if err = q.check(); err != nil {
		return nil, err
	}
	err = r.ask(ctx, q.Topic, func(snap *snapshot) error {
		s, err := q.selection(snap)
		if err != nil {
			return err
		}
		kept, err := r.keptList(ctx, s)
		if err != nil {
			return err
		}
		var known bool
		if list, known = kept.keyed(s, r.limits.series+1); known {
			return nil
		}
		list, err = r.askAll(ctx, s)
		return err
	})
	if errors.Is(err, tables.ErrNoTable) {
		return nil, nil // no sink has stored anything yet
	}
	if err == nil && int64(len(list)) > r.limits.series {
		return nil, tooMuch("it touches more than %d series; name the metric and labels, or take a shorter range", r.limits.series)
	}
	return list, err
}

// keptList fills the snapshot, and returns the list that is kept; nil where that does not have the series of all rows.
// Where it had them all the last time, it is asked while the snapshot is filled.
func (r *Reader) keptList(ctx context.Context, s *selection) (*catalogue, error) {
	topic := s.snap.Topic.Name
	ask := func() (a listAnswer) {
		a.all, _ = r.lists.read(ctx, topic) // without it ClickHouse is asked for the series, and says what is wrong
		return a
	}
	early := r.whole.was(topic) && !s.snap.erasing()
	if early {
		ask = begin(ask)
	}
	err := s.snap.Fill(ctx, r.db)
	var all *catalogue
	if early || err == nil && s.snap.simple() {
		all = ask().all // also after an error: it has ended then
	}
	if err != nil {
		return nil, err
	}
	if all == nil || !s.snap.simple() {
		return nil, r.list(ctx, s.snap)
	}
	s.snap.Listed(all.reach)
	whole := s.snap.complete()
	if r.whole.note(topic, whole); !whole {
		return nil, nil
	}
	return all, nil
}

// askAll asks ClickHouse for the series, of the list and of the rows above it.
func (r *Reader) askAll(ctx context.Context, s *selection) (list []Keyed, err error) {
	statement := sql.SeriesList{Listed: s.listed(), Where: s.condition(), Keyed: true, Limit: r.limits.series + 1}.SQL()
	err = r.lines(ctx, statement, s.params, func(row []string) error {
		one, err := readSeries(row)
		if err != nil {
			return err
		}
		key, err := parseKey(row[8])
		list = append(list, Keyed{one, key})
		return err
	})
	return list, err
}

// parseKey reads a key as ClickHouse prints it, a whole number.
func parseKey(text string) (k Key, err error) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.Sign() < 0 || n.BitLen() > 8*len(k) {
		return k, fmt.Errorf("ClickHouse's answer is %q, expected a series", text)
	}
	n.FillBytes(k[:])
	return k, nil
}

func (k Key) text() string { return new(big.Int).SetBytes(k[:]).String() }

// Sample is a point as it is stored.
type Sample struct {
	Key   Key
	Ns    int64 // Unix
	Value float64
	// Word is what the point has in place of a number: PointsStale, PointsNaN, PointsInf or
	// PointsNegInf; else empty.
	Word string
	// Distribution: the point stands for many values, and Value for none.
	Distribution bool
}

// SampleRequest selects points of series.
type SampleRequest struct {
	Topic string
	// Series of any metrics, as All gives them.
	Series []Keyed
	// From (exclusive) and To (inclusive) bound the time.
	From, To time.Time
}

// codes are the words by their number in the statement.
var codes = []string{"", kinds.PointsStale, kinds.PointsNaN, kinds.PointsInf, kinds.PointsNegInf}

// sampleBytes is a row of the statement: key, time, value, code.
const (
	sampleBytes      = 16 + 8 + 8 + 1
	codeDistribution = 5
)

// Samples calls f with each point that counts, ordered by series and time. A read of more than
// MaxRows rows is ErrTooMuch. An error of f ends it.
func (r *Reader) Samples(ctx context.Context, q SampleRequest, f func(*Sample) error) error {
	if len(q.Series) == 0 {
		return nil
	}
	snap, err := r.snapshot(ctx, q.Topic)
	if errors.Is(err, schemas.ErrRequest) {
		return err
	}
	if err != nil {
		return fmt.Errorf("samples of topic %q: %w", q.Topic, err)
	}
	all := maps.Clone(settings)
	maps.Copy(all, map[string]string{
		"max_execution_time": "60", "max_query_size": "16777216", "max_ast_elements": "2000000", "max_expanded_ast_elements": "2000000",
		"max_rows_to_read": strconv.FormatInt(r.limits.rows, 10), "use_query_condition_cache": "0", "http_write_exception_in_output_format": "0",
	})
	body, err := r.db.Select(ctx, &tables.Select{SQL: samplesSQL(snap, &q), Params: snap.params, Settings: all})
	if err != nil {
		return r.sampleError(q.Topic, err)
	}
	defer func() { _ = body.Close() }()
	in := bufio.NewReaderSize(body, 64<<10)
	var row [sampleBytes]byte
	var s Sample
	for {
		if _, err := io.ReadFull(in, row[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return r.sampleError(q.Topic, err)
		}
		for i := range s.Key { // little-endian
			s.Key[i] = row[15-i]
		}
		s.Ns = int64(binary.LittleEndian.Uint64(row[16:]))
		s.Value = math.Float64frombits(binary.LittleEndian.Uint64(row[24:]))
		code := int(row[32])
		s.Word, s.Distribution = "", code == codeDistribution
		if code < len(codes) {
			s.Word = codes[code]
		}
		if err := f(&s); err != nil {
			return err
		}
	}
}

func (r *Reader) sampleError(topic string, err error) error {
	if strings.Contains(err.Error(), "TOO_MANY_ROWS") {
		return tooMuch("it reads more than %d rows; select fewer series, or take a shorter range", r.limits.rows)
	}
	return fmt.Errorf("samples of topic %q: %w", topic, err)
}

// samplesSQL is the statement of the points.
func samplesSQL(snap *snapshot, q *SampleRequest) string {
	// A key tells its metric already: the metrics are there because the table is sorted by type first.
	var metrics, keys []string
	seen := map[string]bool{}
	for i := range q.Series {
		if m := q.Series[i].Metric; !seen[m] {
			seen[m] = true
			metrics = append(metrics, sql.QuoteText(m))
		}
		keys = append(keys, "'"+q.Series[i].Key.text()+"'") // a literal as long as that would be a float
	}
	slices.Sort(keys)
	code := "multiIf(count > 0 OR buckets != '', " + strconv.Itoa(codeDistribution)
	for i, w := range codes[1:] {
		code += ", points = " + sql.QuoteText(w) + ", " + strconv.Itoa(i+1)
	}
	return sql.SeriesSamples{
		Table: sql.QuotedTable(snap.Database, snap.Topic.Name), Metrics: strings.Join(metrics, ", "), Series: strings.Join(keys, ", "),
		FromNs: q.From.UnixNano(), ToNs: q.To.UnixNano(), Where: snap.Held(once.Nowhere) + " AND " + snap.kept(), CodeSQL: code + ", 0)",
	}.SQL()
}
