// Negotiates capabilities and limits with the kernel when the mount begins (FUSE_INIT).
#pragma once

#include "fs/fuse/fuse_api.h"
#include "fs/fuse/handler_context.h"

namespace siltfs::fuse {

void Negotiate(HandlerContext& context, fuse_conn_info& connection);

}  // namespace siltfs::fuse
