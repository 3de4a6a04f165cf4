package embedded

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/almanac-events/almanac/internal/access"
)

// The users of an embedded ClickHouse that this package knows of; access.ClickHouseUsers are those of Almanac's parts.
const (
	// UserAlmanac may do everything. It keeps the engine at work; no part connects as it.
	UserAlmanac = "almanac"
	// UserReader may read Almanac's database within limits; SQL that people type uses it.
	UserReader = access.UserReader
)

// clickHouseUsers are the names of all users that have a password.
func clickHouseUsers() []string {
	names := []string{UserAlmanac}
	users := access.ClickHouseUsers()
	for i := range users {
		names = append(names, users[i].Name)
	}
	return names
}

// NATSPasswords reads those of the NATS users (access.NATSUsers) from the directory of the streams, and makes and keeps
// (mode 0600) what is missing.
func (d *DataDir) NATSPasswords() (map[string]string, error) {
	if err := os.MkdirAll(d.NATSDir(), 0o700); err != nil {
		return nil, err
	}
	users := access.NATSUsers()
	names := make([]string, len(users))
	for i := range users {
		names[i] = users[i].Name
	}
	return loadPasswords(natsPasswordsFile(d.Path()), names)
}

// NATSPassword reads the password of a user of the NATS on a data directory, for a command beside it.
func NATSPassword(data, user string) (string, error) {
	text, err := os.ReadFile(natsPasswordsFile(data))
	if err != nil {
		return "", fmt.Errorf("reading the passwords: %w", err)
	}
	all := map[string]string{}
	if err := json.Unmarshal(text, &all); err != nil || all[user] == "" {
		return "", fmt.Errorf("the password file %s has no user %s: start `almanac up` again, which makes what is missing", natsPasswordsFile(data), user)
	}
	return all[user], nil
}

func natsPasswordsFile(data string) string { return filepath.Join(NATSDir(data), "passwords.json") }

// loadPasswords reads the passwords of users from a file, and makes and keeps (mode 0600) what is missing.
func loadPasswords(path string, users []string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	all := map[string]string{}
	if err == nil {
		if err = json.Unmarshal(data, &all); err != nil {
			return nil, fmt.Errorf("the password file %s is damaged: remove it, new ones are made at the next start", path)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the passwords: %w", err)
	}
	made := false
	for _, name := range users {
		if all[name] == "" {
			all[name], made = rand.Text(), true
		}
	}
	if !made {
		return all, nil
	}
	if data, err = json.Marshal(all); err != nil {
		return nil, err
	}
	return all, writeFile(path, append(data, '\n'))
}
