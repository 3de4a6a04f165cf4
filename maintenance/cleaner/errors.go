package cleaner

import "errors"

// ErrHeld: too many keys of a lane have records without a row in ClickHouse, although all
// of the lane is stored. Nothing more leaves it.
var ErrHeld = errors.New("records are not in ClickHouse, where they were stored")
