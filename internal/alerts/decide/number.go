package decide

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// Number is a value that JSON can hold also where it is not a number, or has no end: an expression may give such.
type Number float64

// String writes it in as few digits as tell it.
func (n Number) String() string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }

// MarshalJSON implements json.Marshaler: NaN, +Inf and -Inf are texts.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return json.Marshal(n.String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) error {
	f, err := strconv.ParseFloat(string(bytes.Trim(text, `"`)), 64)
	if err == nil {
		*n = Number(f)
	}
	return err
}
