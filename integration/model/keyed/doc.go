// Package keyed plays keyed requests without a server: tries of a request by several producers, a topic that gets
// fields, erasures that purge messages, a janitor in a hurry, restarts of NATS, and a router that dies.
//
// # Model
//
// A request is a few events, which a try cuts into frames and sends. EVENTS has the ids of its messages in memory; a
// restart reads them again from the messages that are there. A router decides about messages in order and commits
// frames, checkpoint and the parts that it was given at once. The windows and parts are those of package schemas.
// The cut follows the events alone, and so do the names of frames.
//
// A client sends a request again within schemas.GivenFor of its first try, also after it was acknowledged. A
// producer sends a frame again until it is answered, however long that takes.
//
// # Who is authoritative
//
// The oracle is: an event of a request is stored at most once, whatever became of its row since, and once where its
// request was acknowledged. So what an erasure took does not come back.
//
// # Failures
//
// A run is made of a seed. Each guard has a mutant, which TestMutants needs to fail.
package keyed
