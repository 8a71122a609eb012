"""An agent of pydantic-ai whose session is deleted between two runs."""

from book import NEW, SESSION_ID, app
from contextapp_client.adapters.pydantic_ai import ContextAppHistory
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart(f"I read {len(messages)} messages.")])


history = ContextAppHistory(app.session(SESSION_ID, create=NEW))
agent = Agent(FunctionModel(model), capabilities=[history])
past = agent.run_sync("Read.").all_messages()
history.session.delete()
print(agent.run_sync("Go on.", message_history=past).output)
