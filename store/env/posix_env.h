// Env on the machine itself. Holds no state; any number may exist.
#pragma once

#include <memory>

#include "store/env/env.h"

namespace siltfs {

std::unique_ptr<Env> NewPosixEnv();

}  // namespace siltfs
