// Where a server is: what a URL says, and what a program's help says.

#include "daemon/http/server_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "daemon/server/default_port.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using ::testing::HasSubstr;

TEST(AddressFromUrl, HasHostPortAndPrefix) {
  const auto address = address_from_url("http://example.org:81/a/b/");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->host, "example.org");
  EXPECT_EQ(address->port, 81);
  EXPECT_EQ(address->prefix, "/a/b");
}

TEST(AddressFromUrl, HasDefaults) {
  for (const char* url : {"http://127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1//"}) {
    const auto address = address_from_url(url);
    ASSERT_TRUE(address.ok()) << url;
    EXPECT_EQ(address->port, 8080) << url;
    EXPECT_EQ(address->prefix, "") << url;
  }
}

TEST(AddressFromUrl, KnowsAddressesInBrackets) {
  EXPECT_EQ(address_from_url("http://[::1]:81")->host, "::1");
  EXPECT_EQ(address_from_url("http://[::1]:81")->port, 81);
  EXPECT_EQ(address_from_url("http://[fe80::1]/x")->host, "fe80::1");
}

TEST(AddressFromUrl, RefusesTheRestWithAWayOut) {
  for (const char* url :
       {"", "127.0.0.1:8080", "https://x", "http://", "http://:80", "http://x:", "http://x:0",
        "http://x:65536", "http://x:99999999999", "http://x:8a", "http://x:-1", "http://[]",
        "http://[::1", "http://[::1]x:80", "http://::1]"}) {
    const auto address = address_from_url(url);
    EXPECT_EQ(address.status().code(), Code::kInvalidArgument) << url;
    EXPECT_THAT(address.status().message(), HasSubstr("http://127.0.0.1:8080")) << url;
  }
}

TEST(PortInHelp, IsTheDefaultThatItNames) {
  const std::string help =
      "--host HOST    ip address to listen (default: 127.0.0.1)\n"
      "--port PORT                             port to listen (default: 8181)\n"
      "                                        (env: LLAMA_ARG_PORT)\n"
      "--reuse-port                            allow (default: disabled)\n";
  EXPECT_EQ(port_in_help(help), 8181);
}

TEST(PortInHelp, IsTheUsualOneWhereItNamesNone) {
  for (const char* help :
       {"", "--port", "--port PORT", "--port PORT  port\n--other X (default: 9)\n",
        "--port PORT (default: none)", "--port PORT (default: 0)", "--port PORT (default: 70000)",
        "--port PORT (default: 99999999999999999999)", "--reuse-port (default: 9)"}) {
    EXPECT_EQ(port_in_help(help), kUsualPort) << help;
  }
}

TEST(PortInHelp, IsAskedOfTheProgramItself) {
  const testing::TempDir dir;
  const std::string program = (dir.path() / "server").string();
  std::ofstream(program)
      << "#!/bin/sh\necho '--port PORT  to listen (default: '$((9000 + $#))')'\n";
  ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
  EXPECT_EQ(default_port_of(program), 9001);
  EXPECT_EQ(default_port_of((dir.path() / "none").string()), kUsualPort);
}

}  // namespace
}  // namespace kvkeep::daemon
