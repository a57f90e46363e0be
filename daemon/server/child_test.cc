#include "daemon/server/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "daemon/testing/test_client.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using ::testing::HasSubstr;

class ChildTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Child>> spawn(const std::vector<std::string>& arguments,
                                       const std::vector<std::string>& unset = {}) {
    return Child::spawn(io_.get_executor(), arguments, unset);
  }
  std::unique_ptr<Child> shell(const std::string& script,
                               const std::vector<std::string>& unset = {}) {
    return *spawn({"sh", "-c", script}, unset);
  }
  static Async<bool> ended(Child& child) {
    co_await child.wait();
    co_return child.has_ended();
  }
  bool wait_for(Child& child) { return run_to_end(io_, ended(child)); }

  testing::TempDir dir_;
  net::io_context io_;
};

TEST_F(ChildTest, TellsHowItEnded) {
  const auto fine = shell("exit 0"), wrong = shell("exit 3"), killed = shell("kill -KILL $$");
  for (Child* child : {fine.get(), wrong.get(), killed.get()}) ASSERT_TRUE(wait_for(*child));
  EXPECT_EQ(fine->exit_status(), 0);
  EXPECT_EQ(wrong->exit_status(), 3);
  EXPECT_EQ(wrong->end_text(), "exit status 3");
  EXPECT_EQ(killed->exit_status(), 128 + SIGKILL);
  EXPECT_THAT(killed->end_text(), HasSubstr("signal 9"));
}

TEST_F(ChildTest, GetsSignalsAndIsNotAskedForTwice) {
  const auto child = shell("trap 'exit 7' TERM; while :; do read -r line < /dev/zero; done");
  EXPECT_FALSE(child->has_ended());
  child->signal(SIGKILL);
  ASSERT_TRUE(wait_for(*child));
  child->signal(SIGKILL);  // Nobody else may have its number now.
  EXPECT_TRUE(wait_for(*child));
}

TEST_F(ChildTest, IsKilledWithItsObject) {
  pid_t pid = 0;
  {
    const auto child = shell("while :; do read -r line < /dev/zero; done");
    pid = child->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(ChildTest, AProgramThatCannotBeRunIsAnErrorWithItsNumber) {
  const auto missing = spawn({"/no/such/program"});
  EXPECT_EQ(missing.status().sys_errno(), ENOENT);
  EXPECT_THAT(missing.status().message(), HasSubstr("/no/such/program: No such file"));
  const auto plain = dir_.path() / "plain";
  std::ofstream(plain) << "no program";
  EXPECT_EQ(spawn({plain.string()}).status().sys_errno(), EACCES);
}

TEST_F(ChildTest, SeesNoVariableThatWasNamedAndNoIgnoredSignal) {
  ::setenv("KVKEEP_TEST_SECRET", "x", 1);
  ::setenv("KVKEEP_TEST_OTHER", "y", 1);
  const auto handler = std::signal(SIGTERM, SIG_IGN);
  const auto child = shell(
      "[ -z \"$KVKEEP_TEST_SECRET\" ] && [ \"$KVKEEP_TEST_OTHER\" = y ] && kill -TERM $$; exit 9",
      {"KVKEEP_TEST_SECRET"});
  ASSERT_TRUE(wait_for(*child));
  EXPECT_EQ(child->exit_status(), 128 + SIGTERM);
  std::signal(SIGTERM, handler);
  ::unsetenv("KVKEEP_TEST_SECRET");
  ::unsetenv("KVKEEP_TEST_OTHER");
}

}  // namespace
}  // namespace kvkeep::daemon
