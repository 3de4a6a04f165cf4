package producer

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Attributes of each type; see schemas.

// String is an attribute with a text value.
func String(key, v string) Attr { return schemas.String(key, v) }

// Int64 is an attribute with an integer value.
func Int64(key string, v int64) Attr { return schemas.Int64(key, v) }

// Float64 is an attribute with a floating-point value.
func Float64(key string, v float64) Attr { return schemas.Float64(key, v) }

// Bool is an attribute with a truth value.
func Bool(key string, v bool) Attr { return schemas.Bool(key, v) }

// Time is an attribute with a point in time.
func Time(key string, v time.Time) Attr { return schemas.Time(key, v) }
