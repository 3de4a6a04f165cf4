package series

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Bounds of the lists that are kept. Beyond, ClickHouse is asked for what a read needs of its list: 13 ms
// in place of the 2 that asking for the parts takes.
const (
	// maxListRows of a topic, some 500 bytes each: 1,000 series in 20 parts, or 20,000 in one.
	maxListRows = 20_000
	// maxListBytes of a topic's columns, which are kept as texts, as rows of frames and as maps.
	maxListBytes = 4 << 20
	maxListParts = 500
	// maxLists bounds the topics, so that all of them have some 100 MiB at the very most.
	maxLists = 4
	// listKept is how long a list is kept that no read asks for. Sweeps are as far apart, so that labels
	// which ClickHouse no longer has stay in memory for twice as long at the most.
	listKept = 10 * time.Minute
)

// lists keeps what the parts of topics' lists of series have: a part never changes, so that each is read once.
type lists struct {
	db  *tables.DB
	now func() time.Time
	mu  sync.Mutex
	of  map[string]*list
	// sweeps runs sweep while lists are kept; nil without one.
	sweeps *time.Timer
}

// list is what was read of a topic's list.
type list struct {
	parts map[string][]listRow // by name and digest
	whole *catalogue
	asked time.Time
}

// errNoList: the list is too large to keep, or its parts changed while they were read.
var errNoList = errors.New("the list of series is not kept")

// read is the topic's list as it is now.
func (l *lists) read(ctx context.Context, topic string) (*catalogue, error) {
	now, err := l.db.ListParts(ctx, topic)
	if err != nil {
		return nil, err
	}
	if err := keepable(now); err != nil {
		l.forget(topic)
		return nil, err
	}
	had := l.asked(topic)
	if had != nil && had.is(now) {
		return had.whole, nil
	}
	next := &list{parts: make(map[string][]listRow, len(now)), asked: l.now()}
	var missing []tables.ListPart
	for _, p := range now {
		if rows, ok := had.part(&p); ok {
			next.parts[partKey(&p)] = rows
		} else {
			missing = append(missing, p)
		}
	}
	if err := l.readParts(ctx, topic, missing, next); err != nil {
		return nil, err
	}
	all := make([][]listRow, 0, len(now))
	for _, p := range now {
		all = append(all, next.parts[partKey(&p)])
	}
	if next.whole, err = newCatalogue(all); err != nil {
		return nil, err
	}
	l.keep(topic, next)
	return next.whole, nil
}

// keepable reports whether a list of such parts is kept.
func keepable(parts []tables.ListPart) error {
	rows, bytes := uint64(0), uint64(0)
	for _, p := range parts {
		rows, bytes = rows+p.Rows, bytes+p.Bytes
	}
	if len(parts) == 0 || len(parts) > maxListParts || rows > maxListRows || bytes > maxListBytes {
		return errNoList
	}
	return nil
}

func partKey(p *tables.ListPart) string { return p.Name + " " + p.Digest }

// part are the rows of a part; of a list that was not read there are no rows.
func (l *list) part(p *tables.ListPart) ([]listRow, bool) {
	if l == nil {
		return nil, false
	}
	rows, ok := l.parts[partKey(p)]
	return rows, ok
}

// is reports whether these are the list's parts.
func (l *list) is(parts []tables.ListPart) bool {
	for i := range parts {
		if _, ok := l.part(&parts[i]); !ok {
			return false
		}
	}
	return len(parts) == len(l.parts)
}

// asked is the list that is kept, which is kept longer then.
func (l *lists) asked(topic string) *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of[topic]
	if one != nil {
		one.asked = l.now()
	}
	return one
}

// forget lets go of a topic's list.
func (l *lists) forget(topic string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, topic)
}

// sweep lets go of lists without a reader, and comes again while there are others.
func (l *lists) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, one := range l.of {
		if l.now().Sub(one.asked) >= listKept {
			delete(l.of, name)
		}
	}
	l.sweeps = nil
	if len(l.of) > 0 {
		l.sweeps = time.AfterFunc(listKept, l.sweep)
	}
}

// keep keeps a list, in the place of the one that was asked for the longest ago.
func (l *lists) keep(topic string, next *list) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*list{}
	}
	for l.of[topic] == nil && len(l.of) >= maxLists {
		oldest := ""
		for name, one := range l.of {
			if oldest == "" || one.asked.Before(l.of[oldest].asked) {
				oldest = name
			}
		}
		delete(l.of, oldest)
	}
	l.of[topic] = next
	if l.sweeps == nil {
		l.sweeps = time.AfterFunc(listKept, l.sweep)
	}
}

// readParts reads the rows of parts. A part that was merged or dropped meanwhile gives no rows.
func (l *lists) readParts(ctx context.Context, topic string, parts []tables.ListPart, into *list) error {
	if len(parts) == 0 {
		return nil
	}
	names := make([]string, len(parts))
	byName := make(map[string]*tables.ListPart, len(parts))
	for i := range parts {
		names[i], byName[parts[i].Name] = sql.QuoteText(parts[i].Name), &parts[i]
		into.parts[partKey(&parts[i])] = nil
	}
	statement := fmt.Sprintf("SELECT _part, %s FROM %s WHERE _part IN (%s) FORMAT JSONCompactEachRow", listColumns, sql.QuotedTable(l.db.Database, schemas.DerivedTable(topic, schemas.DerivedSeries)), strings.Join(names, ", "))
	err := once.Lines(ctx, l.db, statement, nil, settings, func(row []string) error {
		p := byName[row[0]]
		r, err := readListRow(topic, row[1:])
		if err != nil || p == nil {
			return fmt.Errorf("ClickHouse's answer is %.200q: %w", row, err)
		}
		into.parts[partKey(p)] = append(into.parts[partKey(p)], r)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range parts {
		if uint64(len(into.parts[partKey(&parts[i])])) != parts[i].Rows {
			return errNoList
		}
	}
	return nil
}
