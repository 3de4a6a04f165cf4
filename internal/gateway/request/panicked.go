package request

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/access"
)

// Panicked reports a panic: what failed, its value and the stack. Secrets of tokens, which a value may quote from a request, are not whole
// in it, for it ends in a log.
func Panicked(what string, v any, stack []byte) error {
	return errors.New(access.Masked(fmt.Sprintf("gateway: %s: panic: %v\n%s", what, v, stack)))
}
