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

// Refused is a group whose timer that was over last had failed.
type Refused struct {
	Group string `json:"group"`
	// Failed counts those of the span.
	Failed uint64 `json:"failed"`
	// At is when the last one did, unix ns; Status and Error are of its last call.
	At     int64  `json:"at"`
	Status int    `json:"status"`
	Error  string `json:"error"`
}

// Refused returns the groups of a topic whose stored timer that was over last, within the last span, had failed.
func (a Archive) Refused(ctx context.Context, topic string, span time.Duration) ([]Refused, error) {
	if err := schemas.ValidateTopicName(topic); err != nil {
		return nil, err
	}
	answer, err := a.DB.Select(ctx, &tables.Select{
		SQL:      sql.TimerRefused{Table: sql.QuotedTable(a.DB.Database, topic), SpanNs: span.Nanoseconds()}.SQL(),
		Settings: map[string]string{"output_format_json_quote_64bit_integers": "0"},
		User:     a.User, Password: a.Password,
	})
	if errors.Is(err, tables.ErrNoTable) { // nothing was stored yet
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("timers: those that failed in ClickHouse: %w", err)
	}
	defer func() { _ = answer.Close() }()
	var out []Refused
	for d := json.NewDecoder(bufio.NewReader(answer)); d.More(); {
		var r Refused
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("timers: those that failed in ClickHouse: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}
