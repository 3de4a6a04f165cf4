package tables

import (
	"context"
	"fmt"
	"maps"
	"strings"
)

// Among is a condition that only rows fulfil whose value of a column is one of some.
func Among(c Condition, column string, values []string) Condition {
	params := map[string]string{"among": ArrayOf(values)}
	maps.Copy(params, c.Params)
	return Condition{SQL: "(" + c.SQL + ") AND " + column + " IN {among:Array(String)}", Params: params}
}

// Under is a statement that has the condition's text in it, with the condition's parameters and more.
func (c Condition) Under(statement string, more map[string]string) Condition {
	maps.Copy(more, c.Params)
	return Condition{SQL: statement, Params: more}
}

// ArrayOf is ids as the value of an Array(String) parameter; an id has no character that
// would be quoted.
func ArrayOf(ids []string) string {
	if len(ids) == 0 {
		return "[]"
	}
	return "['" + strings.Join(ids, "','") + "']"
}

// Of runs a statement about rows of a topic that may name a person, which the server's log then does not have. f reads each
// line of its answer. noun says what the rows are of.
func (db *DB) Of(ctx context.Context, noun, topic string, c Condition, f func(line string) error) error {
	if err := db.Lines(ctx, &Select{SQL: c.SQL, Params: c.Params, Settings: Settings()}, f); err != nil {
		return fmt.Errorf("%ss of topic %q: %w", noun, topic, err)
	}
	return nil
}

// Columns reads the values of a line.
func Columns(line string, into ...any) error {
	if _, err := fmt.Fscan(strings.NewReader(line), into...); err != nil {
		return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
	}
	return nil
}
