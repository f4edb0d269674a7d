export type {
  AttemptErrorKind,
  AttemptFailure,
  AttemptResponse,
  AttemptResult,
  OutgoingRequest,
} from './attempt-result.js';
export { checkUrl, URL_CHARACTERS_MAX, type UrlFault, type UrlVerdict } from './check-url.js';
export { classifyAddress, type AddressVerdict } from './classify-address.js';
export { createDnsLookup, type Lookup, type LookupAddress } from './dns-lookup.js';
export { createSender, type Sender, type SenderOptions } from './create-sender.js';
export {
  parseEgressPolicy,
  type AddressEntry,
  type EgressPolicy,
  type EgressSettings,
  type NameEntry,
} from './parse-egress-policy.js';
