package schemas

import (
	"errors"

	"github.com/nats-io/nats.go"
)

// Connect is nats.Connect that asks once more where the server refuses the account: while it reads its configuration again it refuses
// who is between the connection and the credentials (nats-server 2.15, server/reload.go).
func Connect(url string, opts ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(url, opts...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nats.Connect(url, opts...)
	}
	return nc, err
}
