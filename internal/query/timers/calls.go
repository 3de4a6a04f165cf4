package timers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Calls are a group's calls of some time, by result.
type Calls struct {
	Group       string `json:"group"`
	Calls       uint64 `json:"calls"`
	Done        uint64 `json:"done"`
	Failed      uint64 `json:"failed"`
	Retry       uint64 `json:"retry"`
	Rescheduled uint64 `json:"rescheduled"`
	// How late they began and how long they took, in milliseconds.
	LateP50 float64 `json:"late_p50_ms"`
	LateP99 float64 `json:"late_p99_ms"`
	TookP99 float64 `json:"took_p99_ms"`
}

// Calls counts the stored calls of a topic that ended within the last span, by group. An attempt that began
// too late for its timer, and one that was rescheduled by hand, are not calls.
func (a Archive) Calls(ctx context.Context, topic string, span time.Duration) ([]Calls, error) {
	if err := schemas.ValidateTopicName(topic); err != nil {
		return nil, err
	}
	answer, err := a.DB.Select(ctx, &tables.Select{
		SQL:      sql.TimerCalls{Table: sql.QuotedTable(a.DB.Database, topic), SpanNs: span.Nanoseconds()}.SQL(),
		Settings: map[string]string{"output_format_json_quote_64bit_integers": "0"},
		User:     a.User, Password: a.Password,
	})
	if errors.Is(err, tables.ErrNoTable) { // nothing was stored yet
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("timers: the calls in ClickHouse: %w", err)
	}
	defer func() { _ = answer.Close() }()
	out := []Calls{}
	for d := json.NewDecoder(bufio.NewReader(answer)); d.More(); {
		var c Calls
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("timers: the calls in ClickHouse: %w", err)
		}
		out = append(out, c)
	}
	return out, nil
}
