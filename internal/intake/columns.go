package intake

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// MappedColumns are the columns of every topic that Options.Columns may fill.
var MappedColumns = []string{schemas.ColLevel, schemas.ColService, schemas.ColType, schemas.ColTraceID, schemas.ColSpanID, schemas.ColMessage}

// validateColumns reports what is wrong with Columns.
func (o *Options) validateColumns() error {
	known := slices.Clone(MappedColumns)
	if o.Topic != nil {
		for _, f := range o.Topic.Fields {
			known = append(known, f.Name)
		}
	}
	from := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(o.Columns)) {
		column := o.Columns[path]
		switch {
		case path == "":
			return fmt.Errorf("column %q is taken from a field without a name", column)
		case path == column:
			return fmt.Errorf("column %q is taken from the field of that name anyway", column)
		case column == schemas.ColTs:
			return errors.New("for the time, name a ts field")
		case column == schemas.ColUserID:
			return errors.New("for user_id, name a user field")
		case from[column] != "":
			return fmt.Errorf("column %q is taken from both %q and %q", column, from[column], path)
		case o.Topic != nil && !slices.Contains(known, column):
			return fmt.Errorf("%q is not a column or a promoted field of topic %s; it has %s", column, o.Topic.Name, strings.Join(known, ", "))
		case path == o.TsField || path == o.UserField:
			return fmt.Errorf("column %q is taken from %q, which is the time or the user already", column, path)
		}
		from[column] = path
	}
	return nil
}

// inClear returns a column that has no privacy rule, and the path it is taken from,
// which has one.
func (o *Options) inClear() (column, path string, rule schemas.PrivacyRule) {
	if o.Topic == nil {
		return "", "", ""
	}
	taken := maps.Clone(o.Columns)
	if o.UserField != "" {
		if taken == nil {
			taken = map[string]string{}
		}
		taken[o.UserField] = schemas.ColUserID
	}
	for _, path := range slices.Sorted(maps.Keys(taken)) {
		if rule := o.Topic.RuleOf(path); rule != "" && o.Topic.RuleOf(taken[path]) == "" {
			return taken[path], path, rule
		}
	}
	return "", "", ""
}
