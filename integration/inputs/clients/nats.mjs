// A bare JSON event by nats.js, without anything of Almanac's, and the same again under its message id.
import { connect } from '@nats-io/transport-node'
import { jetstream } from '@nats-io/jetstream'
const nc = await connect({ servers: process.env.NATS })
const js = jetstream(nc)
const month = new Date().toISOString().slice(0, 7)
const event = JSON.stringify({ ts: new Date().toISOString(), level: 'info', message: 'from nats.js', user_id: 'u-nats', n: 1 })
for (let i = 0; i < 2; i++) await js.publish(`events.app.${month}.0`, event, { msgID: 'nats-js-1' })
await nc.close()
