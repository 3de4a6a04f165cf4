// Package syslog takes syslog messages, in the form of RFC 5424 and of RFC 3164.
//
// # Model
//
// Framer cuts a TCP stream into messages: by a count before each (RFC 6587, octet
// counting) or by a newline. Each message says by its beginning which of both it
// uses. A UDP datagram is one message. Decoder makes one event of one message.
// Both are pure: they start nothing and ask no clock. Input listens, reads streams and
// packets, and puts what was cut into one bounded queue for all peers, from which the
// pool is fed.
//
// The severity is the level, the application's name or tag the service, MSGID the
// type. host, facility, proc_id and structured data (<sd-id>.<name>) are attributes.
// A stamp of RFC 3164 has no year: it gets the latest one that does not put it
// more than a day after now. It has no zone either: Options.Location gives one.
//
// # Failures
//
// The protocol has no answer, so no message is refused for what it says. A queue that is
// full stops the reading of streams, and drops packets, which are counted. A message that does not
// parse is kept whole as the text of its event, with what could be read of it and
// the reason in the attribute syslog.error. So is one whose end does not come within a minute, and its connection is
// closed. A message above MaxLineBytes is cut,
// and syslog.cut_bytes counts what is missing. A time that no event may have is kept in
// syslog.timestamp, and the event gets the time of its arrival.
package syslog
