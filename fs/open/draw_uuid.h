// Draws the UUID of a store.
#pragma once

#include "store/base/status.h"
#include "store/env/env.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

// Sets a random UUID of the form that RFC 9562 calls version 4. Errors: those of Env::FillRandom.
inline Status DrawUuid(Env& env, StoreUuid& uuid) {
  SILTFS_RETURN_IF_ERROR(env.FillRandom(uuid.bytes));
  uuid.bytes[6] = static_cast<uint8_t>((uuid.bytes[6] & 0x0F) | 0x40);
  uuid.bytes[8] = static_cast<uint8_t>((uuid.bytes[8] & 0x3F) | 0x80);
  return Status::Ok();
}

}  // namespace siltfs
