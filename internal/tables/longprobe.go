package tables

import (
	"context"
	"fmt"
	"strings"
)

// longProbe is how long a list of texts is that TakesLong sends: as the erasures of a topic may make
// it (ledger.MaxTopicBytes), and some.
const longProbe = 5 << 20

// TakesLong asks the server with a statement as long as the erasures of a topic may make one, beside a
// fresh block. A ClickHouse that Almanac did not start, or a proxy before it, may take less: then readers
// of such a topic, its sinks and `erase` are refused.
func (db *DB) TakesLong(ctx context.Context) error {
	texts := strings.Repeat("'0123456789abcde',", longProbe/18)
	var n int
	err := db.Lines(ctx, &Select{
		SQL:    "SELECT count() FROM " + FreshTable + " WHERE x NOT IN {p:Array(String)} FORMAT TSV",
		Params: map[string]string{"p": "[" + strings.TrimSuffix(texts, ",") + "]"},
		Fresh:  [][]byte{[]byte("\x01\x01\x01x\x06String\x01y")}, FreshStructure: "x String",
	}, func(line string) error {
		_, err := fmt.Sscan(line, &n)
		return err
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("a long statement counted %d rows of one", n)
	}
	if err != nil {
		return fmt.Errorf("a statement of %d MiB: %w", longProbe>>20, err)
	}
	return nil
}
