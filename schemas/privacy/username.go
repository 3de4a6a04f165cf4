package privacy

import (
	"fmt"
	"github.com/almanac-events/almanac/schemas"
	"slices"
)

// UserNames returns the values of user_id that one user's events may have: the user as given, which events from
// before a rule have, and its hash where the topic hashes user_id. ErrPrivacyKey: it does, and key is empty.
func UserNames(t *schemas.Topic, user string, key []byte) ([]string, error) {
	hashes := slices.ContainsFunc(t.PII, func(p schemas.Private) bool { return p.Field == schemas.ColUserID && p.Rule == schemas.PrivacyHash })
	if !hashes {
		return []string{user}, nil
	}
	if len(key) == 0 {
		return nil, fmt.Errorf("%w: topic %q hashes user_id, so the user's events cannot be found without the key of its hashes: give it in ALMANAC_PII_KEY or ALMANAC_PII_KEY_FILE, or name the hash itself in a filter",
			schemas.ErrPrivacyKey, t.Name)
	}
	e := schemas.Event{UserID: user}
	New(t, key).Apply(&e)
	return []string{user, e.UserID}, nil
}
