package embedded

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// A disk that is full may leave the definition of a table that was being made as an empty file.
// The engine refuses to start then, also when there is room again. A table that a verb makes for its
// own time is taken away: its rows are copies, which the verb makes again. Any other is left, and
// named by what the engine says.

// dropEmptied removes the empty definitions below a data directory of tables that passing says
// are made for a time. It returns their names.
func dropEmptied(data string, passing func(table string) bool) (dropped []string, err error) {
	if passing == nil {
		return nil, nil
	}
	for _, below := range []string{"store/*/*/*.sql", "metadata/*/*.sql"} {
		files, err := filepath.Glob(filepath.Join(data, filepath.FromSlash(below)))
		if err != nil {
			return dropped, fmt.Errorf("embedded ClickHouse: looking for empty definitions: %w", err)
		}
		for _, file := range files {
			info, err := os.Lstat(file)
			if err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
				continue
			}
			table, err := url.PathUnescape(strings.TrimSuffix(filepath.Base(file), ".sql")) // as the engine writes names
			if err != nil || !passing(table) {
				continue
			}
			if err := os.Remove(file); err != nil {
				return dropped, fmt.Errorf("embedded ClickHouse: the empty definition of table %s keeps the engine from starting: %w", table, err)
			}
			dropped = append(dropped, table)
		}
	}
	return dropped, nil
}
