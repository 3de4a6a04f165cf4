package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/query/once/oncetest"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// laneRowsEnv is how many rows a lane has in TestALookReadsItsLane; with it, nine looks are timed in turn.
const laneRowsEnv = "ALMANAC_LANE_ROWS"

// request is an event of a topic of kind audit; those of one identity are equal but for their ids.
type request struct {
	n, id int
	day   int // since the beginning of January
}

func (r request) ts() time.Time { return months.Add(time.Duration(r.day) * 24 * time.Hour) }

func (r request) ref(topic *schemas.Topic, shard int) schemas.ShardRef {
	e := schemas.Event{Type: "request", Attrs: []schemas.Attr{schemas.String(kinds.ColRequestID, fmt.Sprint("r", r.n))}}
	m := schemas.MonthOf(r.ts().UnixNano())
	id := uint64(schemas.LaneOf(topic, &e, r.ts().UnixNano(), ""))<<56 | uint64(m)*10 + uint64(shard)
	return schemas.ShardRef{Topic: topic.Name, Month: m, ID: schemas.Shard(id)}
}

// Copies are found wherever they are stored and whichever comes last, in topics of 1, 4 and 16 lanes, also after rows of
// a shard were lost and marks dropped with them: as many rows count as there are identities.
func TestCopiesInTheirLanes(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int{1, 4, 16} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			t.Parallel()
			r := oncetest.New(t, schemas.Topic{Name: "audit", Kind: kinds.Audit, Lanes: lanes})
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			stored := map[schemas.ShardRef][]request{}
			for round := range 4 {
				byShard := map[schemas.ShardRef][]request{}
				for k := range 60 {
					n := rng.IntN(40)
					q := request{n: n, id: round*1000 + k, day: n * 2} // over three months; equal ones at one time
					ref := q.ref(&r.Topic, rng.IntN(2))
					byShard[ref] = append(byShard[ref], q)
				}
				for ref, some := range byShard {
					pos, values := r.Next(ref), ""
					for i, q := range some {
						if i > 0 {
							values += ","
						}
						values += fmt.Sprintf("(fromUnixTimestamp64Milli(%d, 'UTC'), '00000000-0000-7000-8000-%012x', 'request', 'r%d', 's', %d, %d, %d)", q.ts().UnixMilli(), q.id+1, q.n, uint32(ref.Month), uint64(ref.ID), pos)
					}
					r.Exec(fmt.Sprintf("INSERT INTO %s (ts, id, type, request_id, scope, month, shard, pos) VALUES %s", sql.QuotedTable(r.DB.Database, "audit"), values))
					stored[ref] = append(stored[ref], some...)
				}
				if round == 2 { // as an erasure that takes a shard whole does
					gone := r.Shards()[rng.IntN(len(r.Shards()))]
					r.Exec(fmt.Sprintf("ALTER TABLE %s DROP PARTITION ID '%s'", sql.QuotedTable(r.DB.Database, "audit"), gone.PartitionID()))
					if err := derived.Of(r.DB).Drop(t.Context(), gone, r.Reg.DerivedDropper("audit")); err != nil {
						t.Fatal(err)
					}
					delete(stored, gone)
					delete(r.Pos, gone)
				}
				r.Round()
				first := map[int]int{} // id of the one that counts, by request
				for _, some := range stored {
					for _, q := range some {
						if was, ok := first[q.n]; !ok || q.id < was {
							first[q.n] = q.id
						}
					}
				}
				var want, got []string
				for n, id := range first {
					want = append(want, fmt.Sprintf("r%d 00000000-0000-7000-8000-%012x", n, id+1))
				}
				rows, err := r.DB.Conn().Query(t.Context(), "SELECT concat(request_id, ' ', toString(id)) FROM "+sql.QuotedTable(r.DB.Database, "audit"+schemas.ViewOnce))
				if err != nil {
					t.Fatal(err)
				}
				for rows.Next() {
					var line string
					if err := rows.Scan(&line); err != nil {
						t.Fatal(err)
					}
					got = append(got, line)
				}
				if err := rows.Close(); err != nil {
					t.Fatal(err)
				}
				slices.Sort(want)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("round %d: %d rows count, want %d:\n%v\n%v", round, len(got), len(want), got, want)
				}
			}
		})
	}
}

// A look for copies in a topic of 16 lanes reads what one lane has, and not the topic.
func TestALookReadsItsLane(t *testing.T) {
	t.Parallel()
	rows, looks := 2_000, 1
	if n, err := strconv.Atoi(os.Getenv(laneRowsEnv)); err == nil {
		rows, looks = n, 9
	}
	topics := []*laneTopic{newLaneTopic(t, 1, rows), newLaneTopic(t, 16, rows)}
	for range looks { // in turn
		for _, l := range topics {
			l.look()
			l.examine()
		}
	}
	for _, l := range topics {
		if n, err := derived.Of(l.DB).Repeats(t.Context(), "audit"); err != nil || n != uint64(rows/10) {
			t.Errorf("%d lanes: %d copies, %v; there are %d in the lane", l.Topic.Lanes, n, err, rows/10)
		}
	}
	one, many := topics[0], topics[1]
	if one.read < rows || 10*many.read > 12*one.read {
		t.Errorf("a look reads %d rows where the topic has one lane, and %d where it has 16", one.read, many.read)
	}
	if looks > 1 {
		t.Logf("%d rows a lane; %d rows read with one lane, %d with 16; the shortest of %d looks in turn: %s, %s; with what is noted of it: %s, %s",
			rows, one.read, many.read, looks, one.looked, many.looked, one.examined, many.examined)
	}
}

// laneTopic is a topic of so many lanes with as many rows each, and what looks at its first lane took.
type laneTopic struct {
	*oncetest.Rig
	ref              schemas.ShardRef
	read             int
	looked, examined time.Duration // the shortest
}

func newLaneTopic(t *testing.T, lanes, rows int) *laneTopic {
	t.Helper()
	r := oncetest.New(t, schemas.Topic{Name: "audit", Kind: kinds.Audit, Lanes: lanes})
	for lane := range lanes {
		for pos := range 10 { // the last tenth comes again
			r.Exec(fmt.Sprintf("INSERT INTO %s (ts, id, type, request_id, scope, month, shard, pos) SELECT fromUnixTimestamp64Milli(%d, 'UTC'), generateUUIDv7(number), 'request', concat('%d ', toString(number + %d)), 's', 202601, %d, %d FROM numbers(%d)",
				sql.QuotedTable(r.DB.Database, "audit"), months.UnixMilli(), lane, pos%9*rows/10, uint64(lane)<<56|1, pos+1, rows/10))
		}
	}
	return &laneTopic{Rig: r, ref: schemas.ShardRef{Topic: "audit", Month: 202601, ID: 1}, looked: time.Hour, examined: time.Hour}
}

// look looks for copies of the last tenth of the lane.
func (l *laneTopic) look() {
	l.T.Helper()
	begin := time.Now()
	answer, err := l.DB.Select(l.T.Context(), &tables.Select{SQL: "SELECT count() FROM (" + sql.RepeatsSelect(&l.Topic, l.DB.Database, sql.InLane(0), sql.AboveSQL(l.ref, 9, 10)) + ") FORMAT JSON"})
	if err != nil {
		l.T.Fatal(err)
	}
	var said struct {
		Statistics struct {
			Rows int `json:"rows_read"`
		}
	}
	err = json.NewDecoder(answer).Decode(&said)
	if err = errors.Join(err, answer.Close()); err != nil {
		l.T.Fatal(err)
	}
	l.read, l.looked = said.Statistics.Rows, min(l.looked, time.Since(begin))
}

// examine looks for copies of all of the lane, marks them, and notes up to where.
func (l *laneTopic) examine() {
	l.T.Helper()
	begin := time.Now()
	if errs := derived.Of(l.DB).ExamineAll(l.T.Context(), &l.Topic, 0, []derived.Step{{Ref: l.ref, To: 10}}); errs[0] != nil {
		l.T.Fatal(errs[0])
	}
	l.examined = min(l.examined, time.Since(begin))
}

// A bill looks for copies of rows that were not examined in the lanes of these alone, also when shards are made after its
// snapshot, and takes the other lanes as they were examined.
func TestABillLooksThroughOpenLanes(t *testing.T) {
	t.Parallel()
	const lanes, each = 16, 500
	r := oncetest.New(t, schemas.Topic{Name: "audit", Kind: kinds.Audit, Lanes: lanes})
	table := sql.QuotedTable(r.DB.Database, "audit")
	put := func(lane int, shard, pos uint64, first, n int) {
		id := uint64(lane)<<56 | shard
		r.Exec(fmt.Sprintf("INSERT INTO %s (ts, id, type, request_id, scope, month, shard, pos) SELECT fromUnixTimestamp64Milli(%d, 'UTC'), generateUUIDv7(number), 'request', concat('%d ', toString(number + %d)), 's', 202601, %d, %d FROM numbers(%d)",
			table, months.UnixMilli(), lane, first, id, pos, n))
	}
	for lane := range lanes {
		put(lane, 1, 1, 0, each)
	}
	r.Round()
	put(5, 1, 2, 0, 10) // copies
	snap, err := once.Read(t.Context(), r.Reg, r.DB, &r.Topic)
	if err != nil || snap.Quiet() || len(snap.Open()) != 1 || !snap.Open()[5] {
		t.Fatalf("%v, open lanes %v", err, snap.Open())
	}
	put(5, 2, 1, 10, 20) // since the snapshot: in a shard that it does not know
	put(6, 2, 1, 0, 20)  // of a lane that is not looked through
	put(7, 1, 2, 0, 20)
	answer, err := r.DB.Select(t.Context(), &tables.Select{SQL: "SELECT count() FROM (" + snap.Repeats() + ") FORMAT JSON"})
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Data       []map[string]json.Number
		Statistics struct {
			Rows int `json:"rows_read"`
		}
	}
	err = json.NewDecoder(answer).Decode(&said)
	if err = errors.Join(err, answer.Close()); err != nil {
		t.Fatal(err)
	}
	if n := said.Data[0]["count()"]; n != "30" {
		t.Errorf("%s repeats, expected 30", n)
	}
	if said.Statistics.Rows > 4*(each+30) {
		t.Errorf("%d rows read; the lane has %d, and the topic %d", said.Statistics.Rows, each+30, lanes*each+70)
	}
	var n uint64
	if err := r.DB.Conn().QueryRow(t.Context(), "SELECT count() FROM "+table+" WHERE "+snap.Held(once.Examined)+" AND NOT ("+snap.Again()+")").Scan(&n); err != nil || n != lanes*each {
		t.Errorf("%d rows count, %v; expected %d", n, err, lanes*each)
	}
}
