export { generateSecret, parseSecret, secretKey, signingKey, type SecretResult } from './secret.js';
export { sign, type SignInput } from './sign.js';
export {
  verify,
  type HeaderFields,
  type VerifyInput,
  type VerifyReason,
  type VerifyResult,
} from './verify.js';
