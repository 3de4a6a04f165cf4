package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// OwnRights asks the server as whom a connection is known, and what that user may do; nil where it may do everything.
// ErrNoRights where the server does not say.
func OwnRights[Rights any](ctx context.Context, nc *nats.Conn) (user string, rights *Rights, err error) {
	asked, done := bounded(ctx, silence)
	m, err := nc.RequestWithContext(asked, schemas.SubjectOwnRights, nil)
	if err = done(err); err != nil {
		if errors.Is(err, nats.ErrNoResponders) {
			return "", nil, fmt.Errorf("%w: nothing answers %s", ErrNoRights, schemas.SubjectOwnRights)
		}
		return "", nil, fmt.Errorf("asking NATS for the user's rights: %w", unanswered(ctx, err))
	}
	var answer struct {
		Data struct {
			User        string  `json:"user"`
			Permissions *Rights `json:"permissions"`
		} `json:"data"`
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err = json.Unmarshal(m.Data, &answer); err == nil && answer.Error != nil {
		err = errors.New(answer.Error.Description)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: the answer to %s cannot be used: %w", ErrNoRights, schemas.SubjectOwnRights, err)
	}
	return answer.Data.User, answer.Data.Permissions, nil
}
