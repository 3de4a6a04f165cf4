package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// ErrSecret: a group names a secret that the operator did not give, or one cannot be read.
var ErrSecret = errors.New("no such callback secret")

// secretPrefix begins a secret of Standard Webhooks; base64 of the key follows.
const secretPrefix = "whsec_"

// minSecretBytes is what Standard Webhooks asks for.
const minSecretBytes = 24

// Secrets are the operator's keys for signatures, by name.
type Secrets map[string]secret

// secret is what a name stands for.
type secret struct {
	// topics are those whose groups may name it, or everyTopic alone. Who may declare groups of a topic and create timers there has
	// whatever it likes signed by each secret that the topic may name, so each secret says its topics.
	topics []string
	// keys are two while one is rotated: a callback has a signature of each.
	keys [][]byte
}

// everyTopic in place of topics says that groups of every topic may name a secret.
const everyTopic = "*"

// ParseSecrets reads NAME@TOPIC,TOPIC=whsec_…,whsec_… or NAME@*=whsec_… of several names, separated by semicolons or lines.
func ParseSecrets(text string) (Secrets, error) {
	out := Secrets{}
	var unbound []string // names without topics
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		of, list, ok := strings.Cut(part, "=")
		name, topics, bound := strings.Cut(strings.TrimSpace(of), "@")
		topics = strings.TrimSpace(topics)
		if !ok || !timer.SecretName(name) || strings.HasPrefix(name, secretPrefix) { // which may be the secret itself: it is not said
			return nil, errors.New("a callback secret is not NAME@TOPIC=whsec_… or NAME@*=whsec_…, with a name of [a-z0-9_-]{1,63}")
		}
		if !bound && !slices.Contains(unbound, name) {
			unbound = append(unbound, name)
		}
		var one secret
		for topic := range strings.SplitSeq(topics, ",") {
			if topic = strings.TrimSpace(topic); bound && topics != everyTopic && schemas.ValidateTopicName(topic) != nil {
				return nil, fmt.Errorf("the callback secret %q is for what is not a topic's name, nor %s alone", name, everyTopic) // it may be the secret
			} else if bound {
				one.topics = append(one.topics, topic)
			}
		}
		if was, twice := out[name]; twice {
			if !slices.Equal(was.topics, one.topics) {
				return nil, fmt.Errorf("the callback secret %q is given twice, for other topics; give all of its keys and topics at once", name)
			}
			one = was
		}
		for s := range strings.SplitSeq(list, ",") {
			key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(s), secretPrefix))
			if err != nil || len(key) < minSecretBytes {
				return nil, fmt.Errorf("the callback secret %q is not %s and base64 of %d bytes or more", name, secretPrefix, minSecretBytes)
			}
			one.keys = append(one.keys, key)
		}
		out[name] = one
	}
	if len(unbound) > 0 {
		return nil, fmt.Errorf("the callback secrets %s name no topics, and who declares a group of any topic has what it likes signed by them: name those whose groups may use one, as %s@TOPIC,TOPIC=whsec_…, or %s@%s=whsec_… for every topic", strings.Join(unbound, ", "), unbound[0], unbound[0], everyTopic)
	}
	return out, nil
}

// Sign returns the value of webhook-signature: one signature by each key of the name. The name must be one that groups of the topic
// may name.
func (s Secrets) Sign(topic, name, id string, at time.Time, body []byte) (string, error) {
	one := s[name]
	if len(one.keys) > 0 && !slices.Contains(one.topics, everyTopic) && !slices.Contains(one.topics, topic) {
		return "", fmt.Errorf("%w: %q is not for topic %q; add the topic to it in timers_secrets of the dispatcher, as %s@TOPIC,TOPIC=whsec_…, or have the group name another", ErrSecret, name, topic, name)
	}
	if len(one.keys) == 0 {
		return "", fmt.Errorf("%w: %q; name it in timers_secrets of the dispatcher, as %s@TOPIC=whsec_…", ErrSecret, name, name)
	}
	var out []string
	for _, key := range one.keys {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		_, _ = mac.Write(body)
		out = append(out, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(out, " "), nil
}
