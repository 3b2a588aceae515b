// Makes one call of the npm SDK for each kind of write. Reads from the environment where the simulator is and the
// ids of its club, prints what it saw as JSON.
import { VRChat } from "vrchat";

const { baseUrl, username, password, totpSecret, seed } = JSON.parse(process.env.LASTCALL_SDK_TEST);
const vrchat = new VRChat({
  application: { name: "SdkTest", version: "1.0.0", contact: "ops@example.org" },
  baseUrl,
});

const user = (await vrchat.login({ username, password, totpSecret, throwOnError: true })).data;

const groupId = seed.groupId;
const [asker, turnedDown, invited, away] = seed.strangers;
const [removed, banned, holder] = seed.members;
const [roleId] = seed.roleIds;
const [worldId] = seed.worldIds;
const [friend] = seed.friends;
const post = { title: "Tonight!", text: "At nine.", visibility: "group", sendNotification: true, roleIds: [roleId] };

async function call(method, path, body, query) {
  const { data } = await vrchat[method]({ path, body, query, throwOnError: true });
  return data;
}

async function refused(method, path, body) {
  const { error, response } = await vrchat[method]({ path, body });
  return [response.status, error?.message];
}

await call("respondGroupJoinRequest", { groupId, userId: asker }, { action: "accept" });
await call("respondGroupJoinRequest", { groupId, userId: turnedDown }, { action: "reject" });
await call("createGroupInvite", { groupId }, { userId: invited, confirmOverrideBlock: false });
await call("deleteGroupInvite", { groupId, userId: invited });
await call("kickGroupMember", { groupId, userId: removed });
await call("banGroupMember", { groupId }, { userId: banned });
const unbanned = await call("unbanGroupMember", { groupId, userId: banned });
const given = await call("addGroupMemberRole", { groupId, userId: holder, groupRoleId: roleId });
const taken = await call("removeGroupMemberRole", { groupId, userId: holder, groupRoleId: roleId });
const published = await call("addGroupPost", { groupId }, post);
const notificationId = published.id;
const edited = await call("updateGroupPost", { groupId, notificationId }, { ...post, text: "At ten." });
const posts = await call("getGroupPosts", { groupId });
await call("deleteGroupPost", { groupId, notificationId });
const instance = await call("createInstance", undefined, {
  worldId, type: "group", ownerId: groupId, groupAccessType: "members", region: "eu",
});
const { instanceId } = instance;
const invitation = await call("inviteUser", { userId: friend }, { instanceId: `${worldId}:${instanceId}` });
const closed = await call("closeInstance", { worldId, instanceId }, undefined, { hardClose: false });

console.log(JSON.stringify({
  user: user.id,
  unbanned: unbanned.userId,
  roles: [given, taken],
  posts: [edited.id === published.id, edited.text, posts.posts.length],
  invitation: [invitation.type, invitation.receiverUserId],
  closed: closed.closedAt !== null,
  notInvited: await refused("deleteGroupInvite", { groupId, userId: away }),
  notAsked: await refused("respondGroupJoinRequest", { groupId, userId: away }, { action: "accept" }),
  gone: (await refused("deleteGroupPost", { groupId, notificationId }))[0],
}));
process.exit(0);
