// The port that a llama-server listens on where nobody names one: builds differ.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvkeep::daemon {

inline constexpr uint16_t kUsualPort = 8080;

// As the program's own --help says; kUsualPort where it does not. Runs the program, for at most
// five seconds.
uint16_t default_port_of(const std::string& program);

// The number in "--port PORT  port to listen (default: 8080)".
uint16_t port_in_help(std::string_view help);

}  // namespace kvkeep::daemon
